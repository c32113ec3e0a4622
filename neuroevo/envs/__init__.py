"""Environments and their registry, with one family per simulator: Atari, MuJoCo, mazes, Gymnasium, Brax and MJX."""
