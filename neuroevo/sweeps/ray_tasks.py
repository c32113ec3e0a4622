"""Executor of trials as tasks of a Ray cluster whose machines share a file system."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError, TaskCancelledError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from typing_extensions import override

from neuroevo.cluster.connection import join, leave, nodes, reason_of
from neuroevo.config.load import make_config
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.sessions.evaluators import info_of, make_evaluator
from neuroevo.sessions.folder import RunFolder
from neuroevo.sessions.training_run import run
from neuroevo.sweeps.executors import STOP_SECONDS, End, Executor
from neuroevo.sweeps.sweep import Sweep, Trial


class RayTasks(Executor):
    """Executor with a task of a Ray cluster per trial.

    Args:
        sweep: The sweep.
        address: Address of the cluster: "local", "auto" or HOST:PORT.
    """

    def __init__(self, sweep: Sweep, address: str):
        self._sweep = sweep
        self._leaves = join(address)
        self._running: dict[int, Any] = {}
        self._machines: dict[int, str] = {}
        self._train = ray.remote(_train)

    @override
    def start(self, trial: Trial, config: Config) -> None:
        self._machines[trial.number] = self._machine()
        there = NodeAffinitySchedulingStrategy(self._machines[trial.number], soft=True)
        folder, trust = str(self._sweep.out / trial.folder), self._sweep.trust
        # Reserve no core: trials of other sweeps would wait for it, possibly for days.
        self._running[trial.number] = self._train.options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote(
            config.tables(), folder, trust, os.getcwd(), sys.argv
        )

    def _machine(self) -> str:
        """Return the machine with the fewest trials of this sweep per core. Raise OSError if no machine has a core."""
        trials = Counter(self._machines[number] for number in self._running)
        cores = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in nodes() if node["Alive"]}
        able = [((1 + trials[name]) / count, random.random(), name) for name, count in cores.items() if count]
        if not able:
            raise OSError("no machine of the cluster offers a core")
        return min(able)[-1]

    @override
    def ended(self) -> dict[int, End]:
        over, done = {}, self._done(seconds=0)
        for number in [number for number, task in self._running.items() if task in done]:
            try:
                over[number] = End(ray.get(self._running.pop(number)))
            except TaskCancelledError:
                over[number] = End("was stopped")
            except RayError as error:
                over[number] = End(reason_of(error), died=not isinstance(error, RayTaskError))
        return over

    def _done(self, seconds: float) -> list[Any]:
        """Wait until all tasks are done, at most `seconds`, and return the completed tasks."""
        tasks = list(self._running.values())
        return ray.wait(tasks, num_returns=len(tasks), timeout=seconds)[0] if tasks else []

    @override
    def stop(self, number: int) -> None:
        ray.cancel(self._running[number])

    @override
    def close(self) -> None:
        for task in self._running.values():
            ray.cancel(task)
        self._done(STOP_SECONDS)
        self._running.clear()
        if self._leaves:
            leave()


def _train(
    tables: Mapping[str, Any],
    folder: str,
    trust: bool,
    where: str,
    command: Sequence[str],
) -> str:
    """Train a configuration in a folder, in a Ray process; return the error message, "" without an error."""
    os.chdir(where)  # paths and modules of configurations are relative to the sweep's working directory
    try:
        config = make_config(tables)
        made = RunFolder.resume_or_create(folder, config, trust=trust)
        evaluator = make_evaluator(made.config, made.reference_batch)
        with evaluator, made.open(command, info_of(evaluator)):
            run(made.config, evaluator, made)
    except UserError as error:
        return str(error)
    return ""
