"""Many runs: sweeps of configurations, games, seeds and values of keys, and the reports on them."""
