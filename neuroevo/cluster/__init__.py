"""Distributed evaluation: an evaluator that dispatches a run's episodes to players on a Ray cluster."""
