"""Encode frames as a video: layout of tiles, palettes of .gif files, and file writers."""
