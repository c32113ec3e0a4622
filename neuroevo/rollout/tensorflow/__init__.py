"""The engine whose lanes are TensorFlow graphs over custom ops. Nothing else of rollout/ imports it."""
