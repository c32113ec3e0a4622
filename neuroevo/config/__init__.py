"""Configurations: their schema, sources and validation."""
