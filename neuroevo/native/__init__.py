"""The binding to the C++ core without TensorFlow: NumPy in, NumPy out."""
