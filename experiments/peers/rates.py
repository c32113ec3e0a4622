"""Throughput of simulators on the accelerator: Brax's step in a bare compiled loop, and our lanes with networks."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from neuroevo.accelerated.brax_simulator import BraxSimulator
from neuroevo.accelerated.evaluator import AcceleratedEvaluator
from neuroevo.accelerated.networks import policy
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.network import Network

_CHUNK = 8192  # steps of all lanes between readings of the clock
_MANY = 50  # episodes per lane, which are repeated
_PARTS = 3  # measurements, of which the median counts


Rate = Callable[[float], float]
"""Function that measures for a number of seconds and returns steps of all lanes or simulators per second."""


def bare(simulator: BraxSimulator, width: int, devices: int, network: Network | None = None) -> Rate:
    """Compile the step of all simulators; finished simulators return to their initial states.

    Actions vary because with a constant action robots soon lie still, and MJX's solver is then a third faster.

    Args:
        simulator: The simulator.
        width: Number of parallel simulators, a multiple of the number of devices.
        devices: Number of JAX devices to use.
        network: The policy network, with different initial weights for each simulator; None: random actions.
    """
    thetas: Any = np.zeros((width, 0), np.float32)
    act = None
    if network is not None:
        text = network.vector_text(simulator.observation_size, simulator.action_size)
        weights = NativeWeights([text])
        thetas = np.stack([weights.theta(Genome(seed)) for seed in range(width)])
        act = jax.vmap(policy(text, network.action_bins))
    each = PartitionSpec("devices")  # type: ignore[no-untyped-call]
    mesh = Mesh(np.array(jax.devices()[:devices]), ("devices",))

    def steps(first: Any, keys: jax.Array, thetas: jax.Array, count: jax.Array) -> Any:
        def step(index: Any, states: Any) -> Any:
            if act is None:
                shape = (width // devices, simulator.action_size)
                actions = jax.random.uniform(jax.random.fold_in(keys[0], index), shape, minval=-1.0, maxval=1.0)
            else:
                actions = act(thetas, simulator.observation(states))
            after, _, done = jax.vmap(simulator.step)(states, actions)
            return jax.tree.map(partial(jax.vmap(jnp.where), done), first, after)

        return lax.fori_loop(0, count[0], step, first)

    program = jax.jit(jax.shard_map(steps, mesh=mesh, in_specs=each, out_specs=each, check_vma=False))
    states = jax.jit(jax.vmap(simulator.reset))(jax.random.split(jax.random.PRNGKey(0), width))
    keys = jax.random.split(jax.random.PRNGKey(1), devices)

    def run(count: int) -> float:
        begun = time.perf_counter()
        counts = np.full(devices, count, np.int32)
        jax.block_until_ready(program(states, keys, thetas, counts))  # type: ignore[no-untyped-call]
        return time.perf_counter() - begun

    run(1)
    a_step = run(20) / 20

    def rate(seconds: float) -> float:
        count = max(1, int(seconds / max(a_step, 1e-6)))
        return count * width / run(count)

    return rate


def lanes(simulator: BraxSimulator, network: Network, width: int, devices: int) -> Rate:
    """Compile our lanes, each with a different network.

    Args:
        simulator: The simulator.
        network: The policy network.
        width: Number of lanes, at least two per device.
        devices: Number of JAX devices to use.
    """
    few = max(2, _CHUNK // width)
    evaluator = AcceleratedEvaluator(
        simulator, network, max_episode_steps=10**6, lanes=width, devices=devices, steps=few
    )
    episodes = [Episode(Genome(seed), seed) for seed in range(_MANY * width)]
    batch = evaluator.submit(episodes)
    evaluator.advance(batch)

    def rate(seconds: float) -> float:
        nonlocal batch
        before, begun = evaluator.lane_steps, time.perf_counter()
        while (left := begun + seconds - time.perf_counter()) > 0:
            if not batch.left:
                batch = evaluator.submit(episodes)
            evaluator.wait(batch, seconds=left)
        return (evaluator.lane_steps - before) / (time.perf_counter() - begun)

    return rate


def median_rate(rate: Rate, seconds: float) -> float:
    """Return the median rate of _PARTS measurements that take `seconds` in total."""
    return statistics.median(rate(seconds / _PARTS) for _ in range(_PARTS))
