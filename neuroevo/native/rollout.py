"""Episodes played by the native lane runner, without TensorFlow: bit for bit those of the TensorFlow graph."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import Batch, Episode, EpisodeResults, Outcomes
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.ffi import Results, ref
from neuroevo.native.library import call, core
from neuroevo.native.population import Population
from neuroevo.native.submission import Submission, pack
from neuroevo.networks.architectures import network_text


def run_episodes(
    env: EnvSpec,
    networks: Sequence[Callable[[str, int], list[str]]],
    episodes: Sequence[Episode],
    *,
    lanes: int,
    slots: int,
    backend: str = "cpu",
    dtype: str = "float32",
    behavior: Behavior | None = None,
    reference_batch: np.ndarray | None = None,
) -> Outcomes:
    """Plays episodes with the lane runner; every genome is made from its chain.

    Args:
        env: Recipe of the environment.
        networks: Functions (observation line, num_actions) -> layer list, whose outputs EnvPool.actions() can take.
        episodes: What to play.
        lanes: Threads that step slots.
        slots: Of each lane.
        backend: Of the population.
        dtype: What networks are evaluated in.
        behavior: What to record of each episode; None: nothing.
        reference_batch: What vbn layers take their statistics of, as Population.set_reference() takes it.

    Returns:
        The outcomes in the order of the episodes.

    Raises:
        NativeError: An environment, a network or an episode is not possible.
        UserError: A genome's center does not fit its network.
    """
    pool = EnvPool(env, lanes * slots)
    if behavior is not None:
        pool.record_behaviors(behavior.every, behavior.samples)
    known: list[Normalizer] = list({each for episode in episodes if (each := episode.normalizer) is not None})
    for each in known:
        pool.set_normalizer(each.number, each.mean, each.std)
    normalizers: dict[Normalizer | None, int] = {each: each.number for each in known}
    shown = pool.observation_dtype.name, pool.observation_shape, pool.num_actions
    population = Population(
        [network_text(net, *shown) for net in networks], lanes * slots, backend, dtype, float_rows=0
    )
    if reference_batch is not None:
        population.set_reference(reference_batch)
    submission = pack(episodes, frame_skip=pool.frame_skip, dimensions=population.dimensions, normalizers=normalizers)
    results = run_lanes(pool, population, submission, lanes=lanes, slots=slots)
    batch = Batch(len(episodes), results.behaviors.shape[1], results.behaviors.dtype)
    batch.book(results)
    return batch.outcomes


def run_lanes(
    pool: EnvPool, population: Population, submission: Submission, *, lanes: int, slots: int, first_row: int = 0
) -> EpisodeResults:
    """Plays a submission to its end.

    Args:
        pool: Has an environment for each slot.
        population: Has a row for each slot from first_row on.
        submission: What to play; ids are not looked at.
        lanes: Threads that step slots.
        slots: Of each lane.
        first_row: Rows before it may be what genomes start from.

    Returns:
        The results in the order of the episodes, whose ids are their indices.

    Raises:
        NativeError: Something in it is not possible, or broke.
    """
    pointer = ctypes.POINTER(Results)()
    episodes = submission.for_c()
    call("run_lanes", pool.handle, population.handle, lanes, slots, first_row, ref(episodes), ref(pointer))
    try:
        results = pointer.contents
        count, sums, behavior = results.count, results.observation_sums_size, results.behavior_bytes
        behaviors = _copied(results.behaviors, (count, behavior), np.uint8)
        return EpisodeResults(
            np.arange(count),
            _copied(results.returns, (count,), np.float64),
            _copied(results.steps, (count,), np.int64),
            [failure.decode() for failure in results.failures[:count]],
            _copied(results.observation_sums, (count, sums), np.float64),
            behaviors.view(pool.behavior_dtype) if behavior else np.zeros((count, 0), pool.behavior_dtype),
        )
    finally:
        core().neuroevo_results_free(pointer)


def _copied(pointer: ctypes._Pointer, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """An array of what is behind a pointer, which may be null if there is nothing."""
    out: np.ndarray = np.zeros(shape, dtype)
    if out.nbytes:
        ctypes.memmove(out.ctypes.data, pointer, out.nbytes)
    return out
