"""Engine whose lanes are TensorFlow graphs over custom ops, imported only on demand."""
