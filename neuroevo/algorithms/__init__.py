"""The search algorithms, one file each: pure functions of their states that use only NumPy, SciPy and core."""
