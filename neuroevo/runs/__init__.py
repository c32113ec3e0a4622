"""A run and its folder: what it writes, how it resumes, and how it is read."""
