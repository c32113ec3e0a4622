"""What the compiled program takes, carries and returns (program.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NO_EPISODE = -1


class Players(NamedTuple):
    """Simulators with the networks that play them.

    Attributes:
        simulation: The simulators' states, each array [K, ...].
        theta: float32 [K, D].
        episode: The episode's number, int32 [K]; NO_EPISODE: there is none. A lane keeps that of the last, as it keeps
            its state, until there is new stock.
        limit: After how many steps it ends, int32 [K].
        mean: What is subtracted from the n numbers of an observation, float32 [K, n]; [K, 0] if networks see them as
            they are.
        std: What they are divided by then, likewise.
    """

    simulation: Any
    theta: jax.Array
    episode: jax.Array
    limit: jax.Array
    mean: jax.Array
    std: jax.Array


class Stock(NamedTuple):
    """What the host says of F new episodes: Players without their simulators.

    Attributes:
        theta: float32 [F, D].
        episode: int32 [F].
        limit: int32 [F].
        mean: float32 [F, n] or [F, 0].
        std: Likewise.
    """

    theta: jax.Array
    episode: np.ndarray
    limit: np.ndarray
    mean: np.ndarray
    std: np.ndarray


class Score(NamedTuple):
    """What has come of episodes so far. Sums are pairs of float32, a sum and what rounding left out (Kahan 1965).

    Attributes:
        steps: int32 [K].
        returns: float32 [K, 2].
        sums: Of the observations, n numbers each, and then of their squares: float32 [K, 2n, 2]; [K, 0, 2] if nobody
            asks for them.
        failed: Whether the simulation gave numbers that are not finite, bool [K].
    """

    steps: jax.Array
    returns: jax.Array
    sums: jax.Array
    failed: jax.Array


class Ended(NamedTuple):
    """Episodes that ended while the program ran, the first `number` of these arrays.

    Attributes:
        number: int32 [1].
        episode: int32 [L + F].
        score: Arrays of [L + F, ...].
    """

    number: jax.Array
    episode: jax.Array
    score: Score


class State(NamedTuple):
    """Everything that the program takes and returns.

    Attributes:
        playing: The L lanes.
        idle: Which of them have no episode, or one that is over, bool [L].
        score: Of their episodes.
        stock: F episodes that are ready to begin.
        taken: How many of these have begun, int32 [1].
    """

    playing: Players
    idle: jax.Array
    score: Score
    stock: Players
    taken: jax.Array


class Carry(NamedTuple):
    """What the loop carries.

    Attributes:
        state: The lanes and the stock.
        ended: Episodes that ended in this run.
        steps: How many were taken, int32.
        work: Steps of lanes with an episode, and of all lanes that were stepped, int32 [2].
    """

    state: State
    ended: Ended
    steps: jax.Array
    work: jax.Array


def first_state(simulation: Any, dimension: int, lanes: int, stock: int, devices: int, numbers: int) -> State:
    """Lanes without episodes and an empty stock.

    Args:
        simulation: The shapes and dtypes of a simulator's state. Those of lanes are zeros, which nobody looks at.
        dimension: D.
        lanes: L, of all devices.
        stock: F, of all devices.
        devices: How many there are.
        numbers: 2n, or 0 if observations are not added up.
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
