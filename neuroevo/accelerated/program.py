"""What is compiled: lanes of simulators and their networks, which are refilled as their episodes end.

A program plays L lanes side by side. It takes new episodes, whose simulators were reset beforehand, from a stock of F;
lanes that an episode has left are refilled in the same loop, so that it costs nothing that episodes have different
lengths. The program returns after some steps, or when the stock is empty and too many lanes are idle. It never looks at
a clock: the same episodes take the same lanes in every run.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from neuroevo.accelerated.networks import Forward
from neuroevo.accelerated.simulator import Simulator
from neuroevo.core.observation_statistics import CLIP

NO_EPISODE = -1
_MOST_IDLE = 16  # the program returns for new episodes when one lane in so many is idle


class Players(NamedTuple):
    """Simulators with the networks that play them.

    Attributes:
        simulation: The simulators' states, each array [K, ...].
        theta: float32 [K, D].
        episode: The episode's number, int32 [K]; NO_EPISODE: there is none.
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
        score: Of their episodes.
        stock: F episodes that are ready to begin.
        taken: How many of these have begun, int32 [1].
    """

    playing: Players
    score: Score
    stock: Players
    taken: jax.Array


def first_state(simulation: Any, dimension: int, lanes: int, devices: int, numbers: int) -> State:
    """Lanes without episodes and an empty stock.

    Args:
        simulation: The shapes and dtypes of a simulator's state. Those of lanes are zeros, which nobody looks at.
        dimension: D.
        lanes: L, of all devices; F is the same.
        devices: How many there are.
        numbers: 2n, or 0 if observations are not added up.
    """

    def players() -> Players:
        states = jax.tree.map(lambda leaf: jnp.zeros((lanes, *leaf.shape), leaf.dtype), simulation)
        mean, std = jnp.zeros((lanes, numbers // 2), jnp.float32), jnp.ones((lanes, numbers // 2), jnp.float32)
        nobody, limit = jnp.full(lanes, NO_EPISODE, jnp.int32), jnp.zeros(lanes, jnp.int32)
        return Players(states, jnp.zeros((lanes, dimension), jnp.float32), nobody, limit, mean, std)

    return State(players(), _no_score(lanes, numbers), players(), jnp.zeros(devices, jnp.int32))


def _no_score(count: int, numbers: int) -> Score:
    return Score(
        jnp.zeros(count, jnp.int32),
        jnp.zeros((count, 2), jnp.float32),
        jnp.zeros((count, numbers, 2), jnp.float32),
        jnp.zeros(count, bool),
    )


def stock_up(simulator: Simulator, state: State, renew: jax.Array, keys: jax.Array, others: Stock) -> State:
    """Resets simulators for new episodes of one device.

    Args:
        simulator: What is played.
        state: The device's.
        renew: Whether it gets a new stock, bool [1].
        keys: Of the episodes' random numbers, uint32 [F, 2].
        others: The rest of them.
    """
    new = Players(jax.vmap(simulator.reset)(keys), *others)  # type: ignore[arg-type]
    stock = jax.tree.map(partial(jnp.where, renew[0]), new, state.stock)
    return state._replace(stock=stock, taken=jnp.where(renew, 0, state.taken))


def run(
    simulator: Simulator, forward: Forward, state: State, more: jax.Array, steps: jax.Array
) -> tuple[State, Ended, jax.Array]:
    """The loop of one device.

    Args:
        simulator: What is played.
        forward: The network, of an observation to an action.
        state: The device's.
        more: Whether it has more episodes than its stock, bool [1].
        steps: After how many to return, int32 [1].

    Returns:
        The state, what has ended, and int32 [1, 2]: steps of lanes with an episode, and of all lanes.
    """
    lanes = len(state.playing.episode)
    numbers = state.score.sums.shape[1]
    stocked = jnp.sum(state.stock.episode != NO_EPISODE)
    nothing = Ended(
        jnp.zeros(1, jnp.int32),
        jnp.full(lanes + len(state.stock.episode), NO_EPISODE, jnp.int32),
        _no_score(lanes + len(state.stock.episode), numbers),
    )

    def go_on(carry: tuple[State, Ended, jax.Array]) -> jax.Array:
        state, _, work = carry
        idle = jnp.sum(state.playing.episode == NO_EPISODE)
        left = stocked - state.taken[0]
        wants_stock = (left == 0) & more[0] & (idle * _MOST_IDLE >= lanes)
        return (work[0, 1] < steps[0] * lanes) & ((idle < lanes) | (left > 0)) & ~wants_stock

    def step(carry: tuple[State, Ended, jax.Array]) -> tuple[State, Ended, jax.Array]:
        state, ended, work = carry
        can_begin = jnp.any(state.playing.episode == NO_EPISODE) & (state.taken[0] < stocked)
        state = lax.cond(can_begin, partial(_begin, stocked), lambda same: same, state)
        state, over = _step(simulator, forward, state)
        work = work + jnp.array([[jnp.sum(state.playing.episode != NO_EPISODE), lanes]], jnp.int32)
        state, ended = lax.cond(jnp.any(over), _end, lambda same, none, _: (same, none), state, ended, over)
        return state, ended, work

    return lax.while_loop(go_on, step, (state, nothing, jnp.zeros((1, 2), jnp.int32)))


def _begin(stocked: jax.Array, state: State) -> State:
    """Idle lanes take episodes from the stock, in order."""
    idle = state.playing.episode == NO_EPISODE
    source = state.taken[0] + jnp.cumsum(idle) - 1
    takes = idle & (source < stocked)
    source = jnp.where(takes, source, 0)

    def chosen(stock: jax.Array, now: jax.Array) -> jax.Array:
        return jnp.where(_wide(takes, now), stock[source], now)

    nothing = _no_score(len(idle), state.score.sums.shape[1])
    return State(
        jax.tree.map(chosen, state.stock, state.playing),
        jax.tree.map(lambda new, now: jnp.where(_wide(takes, now), new, now), nothing, state.score),
        state.stock,
        state.taken + jnp.sum(takes, dtype=jnp.int32),
    )


def _step(simulator: Simulator, forward: Forward, state: State) -> tuple[State, jax.Array]:
    """Every lane decides and steps; also says which episodes are over, bool [L]."""
    playing, score = state.playing, state.score
    alive = playing.episode != NO_EPISODE
    observations = simulator.observation(playing.simulation)
    seen = observations
    normalized = playing.mean.shape[1] > 0
    if normalized:
        seen = jnp.clip((observations - playing.mean) / playing.std, -CLIP, CLIP)
    actions = jax.vmap(forward)(playing.theta, seen)
    simulation, rewards, done = jax.vmap(simulator.step)(playing.simulation, actions)
    finite = jnp.isfinite(rewards) & jnp.all(jnp.isfinite(simulator.observation(simulation)), axis=-1)
    sums = score.sums
    if normalized:
        both = jnp.concatenate([observations, observations * observations], axis=-1)
        sums = _add(sums, jnp.where(alive[:, None], both, 0))
    score = Score(
        score.steps + alive,
        _add(score.returns, jnp.where(alive & finite, rewards, 0)),
        sums,
        score.failed | (alive & ~finite),
    )
    over = alive & (done | ~finite | (score.steps >= playing.limit))
    return state._replace(playing=playing._replace(simulation=simulation), score=score), over


def _end(state: State, ended: Ended, over: jax.Array) -> tuple[State, Ended]:
    """Notes what has come of episodes that are over, and leaves their lanes idle."""
    place = jnp.where(over, ended.number[0] + jnp.cumsum(over) - 1, len(ended.episode))

    def noted(values: jax.Array, new: jax.Array) -> jax.Array:
        return values.at[place].set(new, mode="drop")

    episode = noted(ended.episode, state.playing.episode)
    score = jax.tree.map(noted, ended.score, state.score)
    idle = jnp.where(over, NO_EPISODE, state.playing.episode)
    number = ended.number + jnp.sum(over, dtype=jnp.int32)
    return state._replace(playing=state.playing._replace(episode=idle)), Ended(number, episode, score)


def _add(sums: jax.Array, values: jax.Array) -> jax.Array:
    """Adds to pairs of a sum and what its rounding left out."""
    total, rest = sums[..., 0], sums[..., 1]
    value = values + rest
    after = total + value
    return jnp.stack([after, value - (after - total)], axis=-1)


def _wide(mask: jax.Array, like: jax.Array) -> jax.Array:
    """A mask [K] with as many dimensions as an array [K, ...]."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - 1))
