"""Frames into a video: tiles, palettes and the file itself."""
