"""The generation loop: ask, evaluate, tell; the elite is evaluated in parallel with later generations."""
