"""How fast simulators step on the accelerator: Brax's step alone in one compiled loop, and our lanes with networks."""

from __future__ import annotations

import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from neuroevo.accelerated.brax_simulator import BraxSimulator
from neuroevo.accelerated.evaluator import AcceleratedEvaluator
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.networks.architectures import Network

_CHUNK = 8192  # steps of all lanes between looks at the clock
_PARTS = 3  # measured one after another; the middle one counts


def bare_rate(simulator: BraxSimulator, width: int, devices: int, seconds: float) -> float:
    """Steps of all simulators per second, with an action that costs nothing.

    Args:
        simulator: What is stepped.
        width: Simulators side by side, a multiple of the number of devices.
        devices: How many of JAX's devices to use.
        seconds: About how long to measure, without compiling.
    """
    each = PartitionSpec("devices")  # type: ignore[no-untyped-call]
    mesh = Mesh(np.array(jax.devices()[:devices]), ("devices",))
    action = jnp.full((width // devices, simulator.action_size), 0.1, jnp.float32)

    def steps(states: Any, count: jax.Array) -> Any:
        def step(_: Any, states: Any) -> Any:
            return jax.vmap(simulator.step)(states, action)[0]

        return lax.fori_loop(0, count[0], step, states)

    program = jax.jit(jax.shard_map(steps, mesh=mesh, in_specs=each, out_specs=each, check_vma=False))
    states = jax.jit(jax.vmap(simulator.reset))(jax.random.split(jax.random.PRNGKey(0), width))

    def run(count: int) -> float:
        begun = time.perf_counter()
        jax.block_until_ready(program(states, np.full(devices, count, np.int32)))  # type: ignore[no-untyped-call]
        return time.perf_counter() - begun

    run(1)
    count = max(1, int(seconds / _PARTS / max(run(2) / 2, 1e-6)))
    return statistics.median(count * width / run(count) for _ in range(_PARTS))


def lane_rate(simulator: BraxSimulator, network: Network, width: int, devices: int, seconds: float) -> float:
    """Steps of all lanes per second, where each plays a network of its own.

    Args:
        simulator: What is stepped.
        network: Who plays.
        width: Lanes, at least two for each device.
        devices: How many of JAX's devices to use.
        seconds: About how long to measure, without compiling.
    """
    few = max(2, _CHUNK // width)
    with AcceleratedEvaluator(
        simulator, network, max_episode_steps=10**6, lanes=width, devices=devices, steps=few
    ) as evaluator:
        episodes = [Episode(Genome(seed), seed) for seed in range(100 * width)]
        batch = evaluator.submit(episodes)
        while not evaluator.lane_steps:
            evaluator.wait(batch, seconds=1e-3)  # compiles
        rates = []
        for _ in range(_PARTS):
            before, begun = evaluator.lane_steps, time.perf_counter()
            evaluator.wait(batch, seconds=seconds / _PARTS)
            rates.append((evaluator.lane_steps - before) / (time.perf_counter() - begun))
    return statistics.median(rates)
