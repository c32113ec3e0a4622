"""Helpers for the operating system and the terminal: files, processes, signals, output, imports."""
