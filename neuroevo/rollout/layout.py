"""Choose how many lanes and slots play, and how many rows of weights are cached."""

from __future__ import annotations

from neuroevo.native import library

_GPU_LANES = 3
_GPU_SLOTS_A_THREAD = 4
_LIGHT_SLOTS = 16
_MEMBER_SLOTS = 32
_LARGEST_ROW_BYTES = 30e6  # float32 mlp on Atari, the largest network here as it comes; LargeModel has 16e6
_MAX_PARENT_ROWS = 16_384


def default_layout(threads: int, device: str, light: bool = False, members: bool = False) -> tuple[int, int]:
    """Choose how many lanes there are, and how many slots each has.

    On the CPU a lane of one slot for each thread: the rows in play are then few enough to stay in the last-level cache
    from step to step (2 LargeModels are 32 MB, and a step reads about half of each), and a lane does all of its work
    itself. On 2 cores more slots were 17 to 40% slower: `python -m experiments.benchmarks --only layout` measures it
    again. Light slots share the cost of a lane's step: with 16 slots in place of one, HalfCheetah is 1.2 times as fast,
    the hard maze 4 times, and Hopper as fast. Members of one center read its weights together, a whole lane's at once:
    with 32 slots in place of one LargeModel's rollouts are 1.7 times as fast (`--only low_rank`).

    On the GPU three lanes: while the networks of one are evaluated, two have work for the threads, so that these do not
    wait for the last emulator of a lane or for the weights of a new episode. Four slots a thread: a lane's emulators
    then take about a millisecond a step, many times the 0.1 to 0.15 ms that a call of the GPU takes however few its
    rows. `neuroevo bench pipeline` measures it. Rows take at most half of the memory that the GPU has free.

    Args:
        threads: Worker threads.
        device: Where the networks are evaluated, "cpu" or "gpu".
        light: Whether rows are so small and steps so short that a lane's own cost, some 10 microseconds a step, counts.
        members: Whether slots mostly play mutations of one center whose weights are not materialized.

    Returns:
        Number of lanes, and number of slots per lane.
    """
    if device == "cpu":
        return threads, _LIGHT_SLOTS if light else _MEMBER_SLOTS if members else 1
    fitting = int(library.gpu_free_bytes() / 2 / (_GPU_LANES * _LARGEST_ROW_BYTES))
    return _GPU_LANES, max(1, min(_GPU_SLOTS_A_THREAD * threads, fitting))


def default_parent_rows(dimension: int, dtype: str, megabytes: int) -> int:
    """Choose the number of cached rows.

    Args:
        dimension: D of the largest network.
        dtype: Dtype in which networks are evaluated; a parent's float32 weights stay beside its integers.
        megabytes: Memory for these rows, of which at most a quarter of the free memory is taken.

    Returns:
        The rows, at least 2.
    """
    weight_bytes = 4 if dtype == "float32" else 5
    return max(
        2, min(_MAX_PARENT_ROWS, int(min(megabytes * 1e6, library.free_bytes() / 4) / (weight_bytes * dimension)))
    )
