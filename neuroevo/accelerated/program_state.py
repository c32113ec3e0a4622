"""Inputs, loop state and outputs of the compiled program (program.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NO_EPISODE = -1


class Players(NamedTuple):
    """Simulators with the networks that control them.

    Attributes:
        simulation: The simulators' states, each array [K, ...].
        theta: Weights of the networks, float32 [K, D].
        episode: Number of the episode, int32 [K], or NO_EPISODE. A lane keeps the number and the state of its last
            episode until it gets new stock.
        limit: Step limit of the episode, int32 [K].
        mean: Mean by which observations are normalized, float32 [K, n]; [K, 0] without normalization.
        std: Standard deviation by which they are divided, likewise.
    """

    simulation: Any
    theta: jax.Array
    episode: jax.Array
    limit: jax.Array
    mean: jax.Array
    std: jax.Array


class Stock(NamedTuple):
    """Host data of F new episodes: Players without the simulators.

    Attributes:
        theta: Weights, float32 [F, D].
        episode: Numbers of the episodes, int32 [F].
        limit: Step limits, int32 [F].
        mean: Means of observations, float32 [F, n] or [F, 0].
        std: Standard deviations, likewise.
    """

    theta: np.ndarray
    episode: np.ndarray
    limit: np.ndarray
    mean: np.ndarray
    std: np.ndarray


class Score(NamedTuple):
    """Results of episodes so far. Sums are compensated: pairs of float32, a sum and its rounding error (Kahan 1965).

    Attributes:
        steps: Number of steps, int32 [K].
        returns: Sum of rewards, float32 [K, 2].
        sums: Sums of the observations and of their squares, float32 [K, 2n, 2]; [K, 0, 2] without normalization.
        failed: Whether the simulation produced non-finite numbers, bool [K].
    """

    steps: jax.Array
    returns: jax.Array
    sums: jax.Array
    failed: jax.Array


class Ended(NamedTuple):
    """Episodes that ended during a call of the program; the first `number` entries of each array are valid.

    Attributes:
        number: Number of these episodes, int32 [1].
        episode: Their numbers, int32 [L + F].
        score: Their scores, arrays [L + F, ...].
    """

    number: jax.Array
    episode: jax.Array
    score: Score


class State(NamedTuple):
    """State of the program between calls.

    Attributes:
        playing: The L lanes.
        idle: Whether each lane has no episode or a finished one, bool [L].
        score: Scores of the lanes' episodes.
        stock: The F episodes in stock.
        taken: Number of these that have started, int32 [1].
    """

    playing: Players
    idle: jax.Array
    score: Score
    stock: Players
    taken: jax.Array


class Carry(NamedTuple):
    """Carry of the loop.

    Attributes:
        state: The lanes and the stock.
        ended: Episodes that ended during this call.
        steps: Number of steps taken, int32.
        work: Steps of lanes with an episode, and of all lanes that were stepped, int32 [2].
    """

    state: State
    ended: Ended
    steps: jax.Array
    work: jax.Array


def first_state(simulation: Any, dimension: int, lanes: int, stock: int, devices: int, numbers: int) -> State:
    """Return lanes without episodes and an empty stock.

    Args:
        simulation: Shapes and dtypes of a simulator's state; the initial states are zeros, which are never used.
        dimension: Number of weights, D.
        lanes: Number of lanes of all devices, L.
        stock: Size of the stocks of all devices, F.
        devices: Number of devices.
        numbers: 2n, or 0 if sums of observations are not accumulated.
    """

    def players(count: int) -> Players:
        states = jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), simulation)
        mean, std = jnp.zeros((count, numbers // 2), jnp.float32), jnp.ones((count, numbers // 2), jnp.float32)
        nobody, limit = jnp.full(count, NO_EPISODE, jnp.int32), jnp.zeros(count, jnp.int32)
        return Players(states, jnp.zeros((count, dimension), jnp.float32), nobody, limit, mean, std)

    idle, taken = jnp.ones(lanes, bool), jnp.zeros(devices, jnp.int32)
    return State(players(lanes), idle, no_score(lanes, numbers), players(stock), taken)


def no_score(count: int, numbers: int) -> Score:
    """Return the scores of episodes that have not started; see first_state()."""
    return Score(
        jnp.zeros(count, jnp.int32),
        jnp.zeros((count, 2), jnp.float32),
        jnp.zeros((count, numbers, 2), jnp.float32),
        jnp.zeros(count, bool),
    )
