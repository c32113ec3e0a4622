"""A configuration: its sections and keys, where it is read from, and what is wrong with it."""
