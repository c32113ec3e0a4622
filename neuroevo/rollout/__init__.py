"""The engine: lanes of slots that play episodes in TensorFlow graph loops, and the evaluator of this machine."""
