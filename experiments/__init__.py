"""Runnable configurations and studies. Nothing imports this package."""
