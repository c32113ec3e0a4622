"""Sweeps: runs over configurations, games, seeds and hyperparameters, and reports on the results."""
