"""What every room shares: genomes, episodes, the evaluator protocol, seeded randomness, settings, errors."""
