"""Episodes of simulators that run on an accelerator themselves (Brax, MJX): the only room that imports JAX."""
