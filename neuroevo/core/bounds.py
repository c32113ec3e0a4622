"""Upper limits of settings. A larger number is a typing error or exceeds the limits of the native code."""

MAX_COUNT = 2**31 - 1  # episodes, genomes, generations, steps of an episode; times frame_skip it still fits in 64 bits
MAX_STEPS = 2**63 - 1  # steps of a whole run
MAX_THREADS = 4096  # kMaxThreads in custom_ops/core/thread_pool.h
MAX_SLOTS = 2**16  # slots of all lanes together: kMaxSlots in custom_ops/envs/env_pool.h
