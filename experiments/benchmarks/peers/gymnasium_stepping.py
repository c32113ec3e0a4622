"""Compare steps/s of the family "gymnasium" and of Gymnasium's AsyncVectorEnv, in turns, with random actions.

    python experiments/benchmarks/peers/gymnasium_stepping.py [ENVIRONMENT] [ENVS] [THREADS] [WORKERS] [ROUNDS]

Both begin an episode where one ends. It needs neuroevo, so not the peers' virtual environment. On a machine that others
use too, the processor time of a step (of this process and the workers) says more than steps/s.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np

from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool

_SECONDS = 3.0  # of a measurement


def our_steps(name: str, count: int, workers: int) -> Callable[[], None]:
    """A function that steps all environments of an env pool, observes them and resets those that ended."""
    pool, slots, rng = EnvPool(registry.resolve(f"gymnasium:{name}", {"workers": workers}), count), range(count), _rng()
    pool.reset(slots, slots, [0] * count)

    def step() -> None:
        if pool.action_dtype == np.int32:
            actions = rng.integers(pool.num_actions, size=count)
        else:
            actions = rng.uniform(pool.action_low, pool.action_high, (count, pool.num_actions))
        _, dones = pool.step(slots, actions)
        over = np.flatnonzero(dones)
        if len(over):
            pool.reset(over, rng.integers(2**31, size=len(over)), [0] * len(over))
        pool.observe(slots)

    return step


def their_steps(name: str, count: int, workers: int) -> Callable[[], None]:  # noqa: ARG001 - one each
    """A function that steps an AsyncVectorEnv."""
    vector = gymnasium.make_vec(name, count, vectorization_mode="async")
    vector.action_space.seed(0)
    vector.reset(seed=0)
    return lambda: vector.step(vector.action_space.sample()) and None


def measure(make: Callable[[str, int, int], Callable[[], None]], name: str, count: int, workers: int) -> np.ndarray:
    """Steps per second, and microseconds of processor time for a step."""
    others = _children()
    step = make(name, count, workers)
    step()
    processes = _children() - others
    begin, cpu, calls = time.perf_counter(), _cpu_seconds(processes), 0
    while time.perf_counter() - begin < _SECONDS:
        step()
        calls += 1
    seconds = time.perf_counter() - begin
    return np.array([calls * count / seconds, 1e6 * (_cpu_seconds(processes) - cpu) / (calls * count)])


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(child) for task in tasks for child in task.read_text().split()}


def _cpu_seconds(processes: set[int]) -> float:
    """Return the processor seconds of this process and of `processes`."""
    stats = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in stats)  # utime and stime
    return ticks / os.sysconf("SC_CLK_TCK") + sum(os.times()[:2])


def main() -> None:
    """Measure in turns and print the medians."""
    given = [*sys.argv[1:], *["CartPole-v1", "16", "2", "2", "4"][len(sys.argv) - 1 :]]
    name, (count, threads, workers, rounds) = given[0], map(int, given[1:])
    library.set_threads(threads)
    pairs = [[measure(make, name, count, workers) for make in (our_steps, their_steps)] for _ in range(rounds)]
    for who, results in zip(("neuroevo", "AsyncVectorEnv"), zip(*pairs, strict=True), strict=True):
        rate, cpu = np.median(results, axis=0)
        print(f"{who}: {rate:,.0f} steps/s, {cpu:.1f} us of processor time a step (medians of {rounds})")
    rates, cpus = zip(*([ours / theirs for ours, theirs in zip(*pair, strict=True)] for pair in pairs), strict=True)
    print(f"ratios of pairs, medians: steps/s {statistics.median(rates):.2f}, time {statistics.median(cpus):.2f}")


if __name__ == "__main__":
    main()
