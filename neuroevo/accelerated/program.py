"""The compiled program: lanes of simulators and networks, which are refilled as their episodes end.

The program plays L lanes in parallel. New episodes, whose simulators were reset beforehand, come from a stock of F.
Idle lanes are refilled in the loop, so that episodes of different lengths cost nothing. The program returns after a
number of steps, or when the stock is empty and too many lanes are idle. When no episode is left to start and half of
the lanes are idle, the active lanes are compacted and only their half is stepped: the longest episodes of a generation
determine when it ends. Nothing depends on a clock: the same episodes take the same lanes in every run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from neuroevo.accelerated.networks import Forward
from neuroevo.accelerated.program_state import NO_EPISODE, Carry, Ended, Players, Score, State, Stock, no_score
from neuroevo.accelerated.simulator import Simulator
from neuroevo.core.observation_statistics import CLIP

_FEWEST = 2  # lanes: XLA compiles a single lane differently, with other rounding
_MOST_IDLE = 16  # the program returns for new episodes when at least 1 / _MOST_IDLE of the lanes are idle


def stock_up(simulator: Simulator, state: State, renew: jax.Array, keys: jax.Array, others: Stock) -> State:
    """Reset simulators for new episodes of one device.

    Args:
        simulator: The environment.
        state: The device's state.
        renew: Whether the device gets a new stock, bool [1].
        keys: Random key of each episode, uint32 [F, 2].
        others: The other data of the episodes.
    """
    new = Players(jax.vmap(simulator.reset)(keys), *others)  # type: ignore[arg-type]
    stock = jax.tree.map(partial(jnp.where, renew[0]), new, state.stock)
    known = jnp.where(state.idle, NO_EPISODE, state.playing.episode)  # a later group reuses the numbers
    playing = state.playing._replace(episode=known)
    return state._replace(playing=playing, stock=stock, taken=jnp.where(renew, 0, state.taken))


def run(
    simulator: Simulator, forward: Forward, state: State, more: jax.Array, steps: jax.Array
) -> tuple[State, Ended, jax.Array]:
    """Run the loop of one device.

    Args:
        simulator: The environment.
        forward: The network, as a function of theta and an observation to an action.
        state: The device's state.
        more: Whether the device has more episodes than those in its stock, bool [1].
        steps: Number of steps after which to return, int32 [1].

    Returns:
        The state, the episodes that ended, and int32 [1, 2]: steps of lanes with an episode, and of all lanes.
    """
    lanes = len(state.idle)
    half = lanes // 2
    numbers = state.score.sums.shape[1]
    stocked = jnp.sum(state.stock.episode != NO_EPISODE)
    nothing = Ended(
        jnp.zeros(1, jnp.int32),
        jnp.full(lanes + len(state.stock.episode), NO_EPISODE, jnp.int32),
        no_score(lanes + len(state.stock.episode), numbers),
    )

    def half_will_do(state: State) -> jax.Array:
        nothing_left = (state.taken[0] == stocked) & ~more[0]
        return nothing_left & (jnp.sum(~state.idle) <= half) if half >= _FEWEST else jnp.array(False)

    def go_on(carry: Carry) -> jax.Array:
        state = carry.state
        idle = jnp.sum(state.idle)
        left = stocked - state.taken[0]
        wants_stock = (left == 0) & more[0] & (idle * _MOST_IDLE >= lanes)
        work_left = (idle < lanes) | (left > 0)
        return (carry.steps < steps[0]) & work_left & ~wants_stock & ~half_will_do(state)

    def step(carry: Carry) -> Carry:
        state = carry.state
        can_begin = jnp.any(state.idle) & (state.taken[0] < stocked)
        state = lax.cond(can_begin, partial(_begin, stocked), lambda same: same, state)
        return _stepped(simulator, forward, carry._replace(state=state))

    carry = Carry(state, nothing, jnp.array(0, jnp.int32), jnp.zeros(2, jnp.int32))
    carry = lax.while_loop(go_on, step, carry)
    if half >= _FEWEST:
        finish = partial(_run_half, partial(_stepped, simulator, forward), half, steps[0])
        carry = lax.cond(half_will_do(carry.state), finish, lambda same: same, carry)
    return carry.state, carry.ended, carry.work[None]


def _begin(stocked: jax.Array, state: State) -> State:
    """Start episodes from the stock in idle lanes, in order."""
    source = state.taken[0] + jnp.cumsum(state.idle) - 1
    takes = state.idle & (source < stocked)
    source = jnp.where(takes, source, 0)

    def chosen(stock: jax.Array, now: jax.Array) -> jax.Array:
        return jnp.where(_wide(takes, now), stock[source], now)

    nothing = no_score(len(takes), state.score.sums.shape[1])
    return State(
        jax.tree.map(chosen, state.stock, state.playing),
        state.idle & ~takes,
        jax.tree.map(lambda new, now: jnp.where(_wide(takes, now), new, now), nothing, state.score),
        state.stock,
        state.taken + jnp.sum(takes, dtype=jnp.int32),
    )


def _run_half(step: Callable[[Carry], Carry], half: int, steps: jax.Array, carry: Carry) -> Carry:
    """Move the active lanes to the first half and run the loop over it; no further episode starts.

    Args:
        step: Function that steps any number of lanes.
        half: Number of lanes to step; at most this many have episodes.
        steps: Number of steps after which to return.
        carry: The carry of all lanes.
    """
    state = carry.state
    all_lanes = state.playing, state.idle, state.score
    # Lanes keep their places once the active ones are in the first half: results do not depend on when run() returns.
    order = jnp.where(jnp.all(state.idle[half:]), jnp.arange(len(state.idle)), jnp.argsort(state.idle, stable=True))
    all_lanes = jax.tree.map(lambda leaf: leaf[order], all_lanes)
    playing, idle, score = jax.tree.map(lambda leaf: leaf[:half], all_lanes)
    nothing = jax.tree.map(lambda leaf: leaf[:0], state.stock)
    first = carry._replace(state=State(playing, idle, score, nothing, state.taken))

    def go_on(carry: Carry) -> jax.Array:
        return (carry.steps < steps) & ~jnp.all(carry.state.idle)

    last = lax.while_loop(go_on, step, first)
    both = last.state.playing, last.state.idle, last.state.score
    playing, idle, score = jax.tree.map(lambda leaf, own: leaf.at[:half].set(own), all_lanes, both)
    return last._replace(state=state._replace(playing=playing, idle=idle, score=score))


def _stepped(simulator: Simulator, forward: Forward, carry: Carry) -> Carry:
    """Step all lanes and record the outcomes of the episodes that end."""
    state, over = _step(simulator, forward, carry.state)
    playing = jnp.sum(~state.idle, dtype=jnp.int32)
    work = carry.work + jnp.array([playing, len(over)], jnp.int32)
    state, ended = lax.cond(jnp.any(over), _end, lambda same, none, _: (same, none), state, carry.ended, over)
    return Carry(state, ended, carry.steps + 1, work)


def _step(simulator: Simulator, forward: Forward, state: State) -> tuple[State, jax.Array]:
    """Choose an action and step in every lane; also return which episodes ended, bool [L]."""
    playing, score = state.playing, state.score
    alive = ~state.idle
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
    """Record the outcomes of finished episodes and mark their lanes idle."""
    place = jnp.where(over, ended.number[0] + jnp.cumsum(over) - 1, len(ended.episode))

    def noted(values: jax.Array, new: jax.Array) -> jax.Array:
        return values.at[place].set(new, mode="drop")

    episode = noted(ended.episode, state.playing.episode)
    score = jax.tree.map(noted, ended.score, state.score)
    number = ended.number + jnp.sum(over, dtype=jnp.int32)
    return state._replace(idle=state.idle | over), Ended(number, episode, score)


def _add(sums: jax.Array, values: jax.Array) -> jax.Array:
    """Add values to compensated sums, pairs of a sum and its rounding error."""
    total, rest = sums[..., 0], sums[..., 1]
    value = values + rest
    after = total + value
    return jnp.stack([after, value - (after - total)], axis=-1)


def _wide(mask: jax.Array, like: jax.Array) -> jax.Array:
    """Reshape a mask [K] so that it broadcasts against an array [K, ...]."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - 1))
