"""Storage of runs: the database of a run folder, and reading and writing it."""
