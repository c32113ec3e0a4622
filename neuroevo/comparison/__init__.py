"""Compares neuroevo with simulators that live on the accelerator and with the libraries that evolve on them."""
