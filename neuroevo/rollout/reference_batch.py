"""The reference batch of virtual batch normalization (Salimans et al. 2017): observations of seeded random play.

As in the evolution-strategies-starter of 2017 and the deep-neuroevolution code of 2018, one environment is stepped with
uniformly random actions, the observation after every step is recorded, and a new episode starts when one ends. There,
each start of the program drew a new batch; here, the batch is derived from a seed: actions and episode seeds (no-op
starts) are drawn for randomness.REFERENCE. An episode's first observation is not included, as in 2017; in 2018 it could
be, since the order of stepping and reading the screen was not fixed.

A network cannot be evaluated without the batch from which its statistics were computed. A run therefore stores the
batch in its database instead of drawing it again.
"""

from __future__ import annotations

import numpy as np

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.randomness import Purpose, draw_indices, draw_seeds, draw_uniforms
from neuroevo.native.env_pool import EnvPool

COUNT = 128  # observations, in both papers
_ACTIONS, _EPISODES = range(2)  # streams of random numbers, used in place of a generation


def draw_reference_batch(env: EnvSpec, seed: int, count: int = COUNT) -> np.ndarray:
    """Draw observations of random play in the networks' format, [count, ...]: uint8, or float32, not normalized.

    Action t is the t-th index drawn from (seed, 0, REFERENCE); the numbers of a vector action are uniform between its
    bounds and drawn likewise. The seed of episode e is the e-th drawn from (seed, 1, REFERENCE). Episodes last until
    the environment's limit.

    Raises:
        UserError: Actions have no bounds, or the environment cannot be created.
    """
    pool = make_pool(env)
    observe = pool.observe if pool.observation_dtype == np.uint8 else pool.observe_normalized
    actions = _random_actions(pool, env, seed, count)
    seeds = iter(draw_seeds(count, seed, _EPISODES, Purpose.REFERENCE))
    batch, over = [], True
    for action in actions:
        if over:
            pool.reset([0], [next(seeds)], [0])
        _, (over,) = pool.step([0], action[None])
        batch.append(observe([0])[0])
    return np.stack(batch)


def make_pool(env: EnvSpec) -> EnvPool:
    """Make a pool of one environment.

    Raises:
        UserError: The native core rejects an option.
    """
    try:
        return EnvPool(env, 1)
    except NativeError as error:
        raise UserError(f"{env.name} cannot be made: {error}") from None


def _random_actions(pool: EnvPool, env: EnvSpec, seed: int, count: int) -> np.ndarray:
    """Draw the actions of successive calls of pool.step(): int32 [count], or float32 [count, A]."""
    if pool.action_dtype == np.int32:
        return np.array(draw_indices(count, pool.num_actions, seed, _ACTIONS, Purpose.REFERENCE), np.int32)
    low, high = pool.action_low, pool.action_high
    if not np.isfinite([low, high]).all():
        raise UserError(f"an action of {env.name} lies between {low} and {high}, expected finite bounds")
    numbers = draw_uniforms(count * len(low), seed, _ACTIONS, Purpose.REFERENCE).reshape(count, len(low))
    return (low + (high - low) * numbers).astype(np.float32)
