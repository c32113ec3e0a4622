"""Benchmarks of throughput against the limits of this machine and against other libraries."""
