"""Overhead of distributed evaluation, with machines simulated by Ray on this one, and the driver's processor time."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from experiments.benchmarks.programs import ROOT, median_ratio
from experiments.benchmarks.sleeping import LONGEST, SHORTEST, STEP_SECONDS
from neuroevo.core.episode import Episode
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.genome import Genome, grow
from neuroevo.networks.network import Network

_SLEEPING = "gymnasium:experiments.benchmarks.sleeping:Sleeping-v0"
_NETWORK = Network(name="mlp", hidden=(16,))
_LAYOUTS = ((2, 4), (8, 2))  # machines, slots of each
_EPISODES = 20  # episodes per slot
_SCALE = float(np.float32(0.02))
_GENOMES, _PARENTS, _DEPTH = 1000, 20, 200  # sizes of the generation whose cost on the driver is measured
_console = Console(width=120, highlight=False)


def cluster(seconds: float, rounds: int, threads: int) -> dict[str, Any]:
    """Measure batches of sleeping episodes on simulated machines and in one process of as many slots; driver's cost."""
    found: dict[str, Any] = {"sleeping": {}}
    title = f"{_EPISODES} episodes a slot, of {SHORTEST} to {LONGEST} steps of {1000 * STEP_SECONDS:g} ms, s"
    table = Table("machines x slots", "cluster", "one process", "ratio", "ideal", title=title)
    for machines, slots in _LAYOUTS:
        row = _in_a_process(_sleeping, machines, slots, rounds)
        found["sleeping"][f"{machines} x {slots}"] = row
        own, one = (f"{statistics.median(row[name]):.2f}" for name in ("cluster", "one"))
        table.add_row(f"{machines} x {slots}", own, one, f"{row['ratio']:.3f}", f"{row['ideal']:.2f}")
    _console.print(table)
    found["driver"] = row = _in_a_process(_driver, rounds)
    title = f"driver, {_GENOMES} genomes, 2 machines"
    columns = {
        "ms": "ms a generation",
        "calls": "calls",
        "ms_a_call": "ms a call",
        "empty_ms": "ms an empty call of Ray",
    }
    table = Table(*columns.values(), "bytes a genome", title=title)
    table.add_row(*(f"{row[name]:.2f}" for name in (*columns, "bytes_a_genome")))
    _console.print(table)
    return found


def _in_a_process(measure: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of measure() in a separate process: threads and Ray serve one evaluator per process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(measure, *arguments).result()


def _sleeping(machines: int, slots: int, rounds: int) -> dict[str, Any]:
    from neuroevo.rollout.evaluator import LocalEvaluator

    total = machines * slots
    alone: dict[str, Any] = {"threads": total, "lanes": total, "slots": 1, "device": "cpu"}
    episodes = [Episode(Genome(1).child(number, _SCALE), number) for number in range(_EPISODES * total)]
    times: dict[str, list[float]] = {"cluster": [], "one": []}
    with ExitStack() as stack:
        evaluators: dict[str, Evaluator] = {
            "cluster": stack.enter_context(_on_machines(machines, slots, _SLEEPING, {"workers": slots})),
            "one": stack.enter_context(LocalEvaluator(_SLEEPING, _NETWORK, env_options={"workers": total}, **alone)),
        }
        outcomes = [evaluator.evaluate(episodes[: 2 * total]) for evaluator in evaluators.values()]  # warms up
        assert np.array_equal(outcomes[0].returns, outcomes[1].returns)
        for _ in range(rounds):
            for name, evaluator in evaluators.items():
                begun = time.perf_counter()
                steps = int(evaluator.evaluate(episodes).steps.sum())
                times[name].append(time.perf_counter() - begun)
    return {**times, "ratio": median_ratio(times["cluster"], times["one"]), "ideal": steps * STEP_SECONDS / total}


def _driver(rounds: int) -> dict[str, float]:
    """Return the processor time of a generation and of calls to idle actors at the same rate, measured in turns."""
    from neuroevo.cluster.table import table_of

    rng = np.random.default_rng(0)
    parents = [
        grow(Genome(number), tuple((int(seed), _SCALE) for seed in rng.integers(2**62, size=_DEPTH)))
        for number in range(_PARENTS)
    ]

    def generation() -> list[Episode]:
        seeds = rng.integers(2**62, size=(_GENOMES, 2)).tolist()
        return [
            Episode(parents[number % _PARENTS].child(mutation, _SCALE), seed)
            for number, (mutation, seed) in enumerate(seeds)
        ]

    milliseconds, calls, empty = [], [], []
    with _on_machines(2, 16, "HardMaze-v0", {}, threads=1) as evaluator:
        evaluator.evaluate(generation())  # decodes the parents' weights
        call_idle_actors = _idle_actors(2)
        for _ in range(rounds):
            episodes, before = generation(), evaluator.calls
            begun, cpu = time.perf_counter(), time.process_time()
            evaluator.evaluate(episodes)
            seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
            milliseconds.append(1000 * cpu)
            calls.append(evaluator.calls - before)
            cpu = time.process_time()
            call_idle_actors(calls[-1], seconds)
            empty.append(1000 * (time.process_time() - cpu) / calls[-1])
    ms, count = statistics.median(milliseconds), statistics.median(calls)
    size = len(pickle.dumps(table_of(generation()), protocol=5)) / _GENOMES
    row = {"ms": ms, "calls": count, "ms_a_call": float(np.median(np.divide(milliseconds, calls)))}
    return {**row, "empty_ms": statistics.median(empty), "bytes_a_genome": size}


def _idle_actors(number: int) -> Callable[[int, float], None]:
    """Start actors; return a function that calls them a number of times in a number of seconds, one call per actor."""
    import ray

    actors = [ray.remote(num_cpus=0)(_Idle).remote() for _ in range(number)]
    ray.get([actor.wait.remote(0.0) for actor in actors])

    def call(times: int, seconds: float) -> None:
        a_call = seconds * number / times
        calls = {actor.wait.remote(a_call): actor for actor in actors}
        for left in range(times - 1, -1, -1):
            ready, _ = ray.wait(list(calls), num_returns=1)
            actor = calls.pop(ready[0])
            ray.get(ready[0])
            if left >= number:
                calls[actor.wait.remote(a_call)] = actor

    return call


class _Idle:
    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


@contextmanager
def _on_machines(
    machines: int, slots: int, env: str, options: dict[str, object], threads: int | None = None
) -> Iterator[Any]:
    """Provide an evaluator on a number of simulated machines; the cluster's head does not play."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    from ray.cluster_utils import Cluster as SimulatedCluster

    from neuroevo.cluster.evaluator import ClusterEvaluator
    from neuroevo.cluster.machines import Machines
    from neuroevo.cluster.origin import origin
    from neuroevo.cluster.player import PlayerSettings
    from neuroevo.config.schema import Cluster

    head = {"num_cpus": 0, "object_store_memory": 100 * 2**20, "include_dashboard": False}
    simulated = SimulatedCluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(machines):
            simulated.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        lanes = slots if threads is None else threads  # a slot that sleeps keeps its lane waiting
        player = PlayerSettings(
            env, options, None, _NETWORK, device="cpu", lanes=lanes, slots=slots // lanes, origin=origin()
        )
        where = Cluster(address=simulated.address, machines=machines)
        with ClusterEvaluator(where, Machines(player, threads=threads or slots, head_plays=False)) as evaluator:
            yield evaluator
    finally:
        simulated.shutdown()
