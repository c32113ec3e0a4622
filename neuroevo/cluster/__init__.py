"""Many machines: an evaluator that hands a run's episodes to players on the machines of a Ray cluster."""
