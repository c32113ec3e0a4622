"""Sweeps: trials of one configuration with other values of its keys, by Ray Tune. Ray is imported when one begins."""
