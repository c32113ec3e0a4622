"""Helpers for the operating system and the terminal (files, signals, output), and statistics of returns."""
