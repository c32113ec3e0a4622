"""Gymnasium environments, run in Python worker processes."""
