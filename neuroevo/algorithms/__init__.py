"""The search algorithms: state in, state out, on NumPy and core alone. One file each."""
