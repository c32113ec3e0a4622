"""Many runs: suites of configurations, games and seeds, and the report on them."""
