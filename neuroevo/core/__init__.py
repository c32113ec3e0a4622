"""Foundations of all other packages: genomes, episodes, the evaluator protocol, seeded randomness, settings, errors."""
