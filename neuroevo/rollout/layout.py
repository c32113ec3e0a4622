"""Default numbers of lanes, slots and cached rows of weights."""

from __future__ import annotations

from neuroevo.native import library

_GPU_LANES = 3
_GPU_SLOTS_A_THREAD = 4
_LIGHT_SLOTS = 16
_MEMBER_SLOTS = 32
_LARGEST_ROW_BYTES = 30e6  # float32 mlp on Atari, the largest network with default settings; LargeModel has 16e6
_MAX_PARENT_ROWS = 16_384


def default_layout(threads: int, device: str, light: bool = False, members: bool = False) -> tuple[int, int]:
    """Return the default number of lanes and of slots per lane.

    The CPU layout has one lane with one slot per thread: the active rows are then few enough to stay in the last-level
    cache between steps (2 LargeModels are 32 MB, and a step reads about half of each), and a lane does all of its work
    itself. On 2 cores more slots were 17 to 40% slower (`python -m experiments.benchmarks --only layout`). Light slots
    share the cost of a lane's step: with 16 slots instead of one, HalfCheetah is 1.2 times as fast, the hard maze 4
    times, and Hopper as fast. Members of one center read its weights together for a whole lane: with 32 slots instead
    of one, LargeModel's rollouts are 1.7 times as fast (`--only low_rank`).

    The GPU layout has three lanes: while the networks of one lane are evaluated, the other two keep the threads busy,
    so that these do not wait for the last emulator of a lane or for the weights of a new episode. With four slots per
    thread, a lane's emulators take about a millisecond per step, many times the 0.1 to 0.15 ms of the smallest GPU call
    (`neuroevo bench pipeline`). Rows take at most half of the GPU's free memory.

    Args:
        threads: Number of worker threads.
        device: Where the networks are evaluated, "cpu" or "gpu".
        light: Whether rows are small and steps short, so that a lane's cost of about 10 microseconds per step matters.
        members: Whether slots mostly play mutations of one center whose weights are not materialized.

    Returns:
        Number of lanes, and number of slots per lane.
    """
    if device == "cpu":
        return threads, _LIGHT_SLOTS if light else _MEMBER_SLOTS if members else 1
    fitting = int(library.gpu_free_bytes() / 2 / (_GPU_LANES * _LARGEST_ROW_BYTES))
    return _GPU_LANES, max(1, min(_GPU_SLOTS_A_THREAD * threads, fitting))


def default_parent_rows(dimension: int, dtype: str, megabytes: int) -> int:
    """Return the default number of cached rows, at least 2.

    Args:
        dimension: D of the largest network.
        dtype: Dtype in which networks are evaluated; with int8, a parent's float32 weights are kept as well.
        megabytes: Memory for these rows, limited to a quarter of the free memory.
    """
    weight_bytes = 4 if dtype == "float32" else 5
    return max(
        2, min(_MAX_PARENT_ROWS, int(min(megabytes * 1e6, library.free_bytes() / 4) / (weight_bytes * dimension)))
    )
