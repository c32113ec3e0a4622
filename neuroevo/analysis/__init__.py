"""Evaluate, replay, render, plot and export finished and running runs."""
