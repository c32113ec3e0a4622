"""The largest numbers that a run may be asked for: what is above them is a typing error or does not fit."""

MAX_COUNT = 2**31 - 1  # episodes, genomes, generations, an episode's steps: times frame skips it still fits in 64 bits
MAX_STEPS = 2**63 - 1  # of a whole run
MAX_THREADS = 4096  # kMaxThreads in custom_ops/core/thread_pool.h
MAX_SLOTS = 2**16  # of all lanes together: kMaxSlots in custom_ops/envs/env_pool.h
