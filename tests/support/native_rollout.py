"""Episodes played by the native core's lanes, without an evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import Batch, Episode, Outcomes
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.rollout import Rollout
from neuroevo.native.submission import pack
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
    """Play episodes, computing every genome from its chain.

    Args:
        env: Specification of the environment.
        networks: Functions (observation line, num_actions) -> layer list with outputs for EnvPool.actions().
        episodes: Episodes to play.
        lanes: Number of lanes.
        slots: Number of slots per lane.
        backend: Backend of the population.
        dtype: Dtype in which networks are evaluated.
        behavior: Behavior to record of each episode; None to record nothing.
        reference_batch: Observations from which vbn layers compute their statistics, for Population.set_reference().

    Returns:
        The outcomes in the order of the episodes.

    Raises:
        NativeError: An environment, a network or an episode is invalid.
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
    batch = Batch(len(episodes), pool.behavior_size, pool.behavior_dtype)
    rollout = Rollout(pool, population, lanes=lanes, slots=slots)
    try:
        rollout.submit(submission)
        while batch.left:
            batch.book(rollout.results(batch.left, 0.05))
    finally:
        rollout.close()
    return batch.outcomes
