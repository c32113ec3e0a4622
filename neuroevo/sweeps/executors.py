"""Where trials are trained: in processes of this machine, or as tasks of a Ray cluster, which may share a pipeline.

Either trains a configuration in a folder until its budget is spent, and resumes a run that the folder contains. Results
are read from the folder.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from typing_extensions import override

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.networks.network import Network
from neuroevo.system.files import write_atomically
from neuroevo.system.safe_path import python_command

CHILD = python_command("from neuroevo.cli.child import run; run(sys.argv[1:])")
_OTHER = python_command("from neuroevo.cli.child import run_implementation; run_implementation(sys.argv[1:])")
_STOP_SECONDS = 30  # for a trial to store its state and end; it takes one or two
_LAST_LINES = 5


class End(NamedTuple):
    """How the process of a trial ended.

    Attributes:
        reason: Why it did not finish, "" if it did.
        died: Whether it ended by a signal or with its machine, so that another process may do better.
    """

    reason: str = ""
    died: bool = False


class Executor(ABC):
    """Trains trials."""

    @abstractmethod
    def start(self, number: int, config: Config, folder: Path, trust: bool, implementation: str | None) -> None:
        """Begin to train a trial.

        Args:
            number: The trial's.
            config: Its configuration.
            folder: Its run's folder, in which a run of this configuration may have begun.
            trust: Whether to run code and read models that the run in the folder names beside those of `config`.
            implementation: The function that trains it; None: neuroevo itself does.

        Raises:
            OSError: Its files cannot be written, or the machine has no room for another process.
        """

    @abstractmethod
    def ended(self) -> dict[int, End]:
        """Return the trials that have ended since the last call, and how."""

    @abstractmethod
    def stop(self, number: int) -> None:
        """Have a trial store its state and end."""

    @abstractmethod
    def close(self) -> None:
        """Stop all trials and wait for them."""


class Processes(Executor):
    """A process of this machine for each trial, whose output is beside the trial's folder.

    Args:
        lock: A descriptor that every process keeps open, so that none outlives its sweep unnoticed.
        program: The command that trains.
    """

    def __init__(self, lock: int, program: Sequence[str] = CHILD):
        self._program, self._lock = [*program, str(os.getpid())], lock
        self._running: dict[int, tuple[subprocess.Popen[bytes], Path, int]] = {}

    @override
    def start(self, number: int, config: Config, folder: Path, trust: bool, implementation: str | None) -> None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        own, printed = file_beside(folder, ".toml"), file_beside(folder, ".out")
        write_atomically(own, config.toml().encode())
        if implementation is None:
            command = [*self._program, "train", str(own), "--resume", str(folder), *(["--trust"] if trust else [])]
        else:
            command = [*_OTHER, str(os.getpid()), implementation, str(own), str(folder), str(int(trust))]
        with printed.open("ab") as output:
            before = output.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a terminal's Ctrl-C is for the sweep, which passes it on
                pass_fds=[self._lock],
            )
        self._running[number] = process, printed, before

    @override
    def ended(self) -> dict[int, End]:
        over = {}
        for number, (process, printed, before) in list(self._running.items()):
            code = process.poll()
            if code is not None:
                over[number] = _end(code, printed, before)
                del self._running[number]
        return over

    @override
    def stop(self, number: int) -> None:
        self._running[number][0].terminate()

    @override
    def close(self) -> None:
        processes, deadline = [process for process, _, _ in self._running.values()], time.monotonic() + _STOP_SECONDS
        for process in processes:
            process.terminate()
        try:
            for process in processes:
                process.wait(max(deadline - time.monotonic(), 0))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            for process in processes:
                process.kill()
                process.wait()
        self._running.clear()


def file_beside(folder: Path, suffix: str) -> Path:
    """Return a file beside a run's folder: ".toml" is what the run was started with, ".out" what it printed."""
    return folder.with_name(folder.name + suffix)


def _end(code: int, printed: Path, before: int) -> End:
    if code == 0:
        return End()
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    with printed.open("rb") as file:
        file.seek(before)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return End("\n".join([how, *lines[-_LAST_LINES:]]), died=code < 0)


class RayTasks(Executor):
    """Tasks of a Ray cluster, whose machines see the same folders.

    Args:
        address: The cluster's: "local", "auto" or HOST:PORT.
        sweep: The same for every process that runs this sweep, of which there is one at a time.
        networks: Those of trials that share a pipeline; None: each trial has its own.
    """

    def __init__(self, address: str, sweep: str, networks: Sequence[Network] | None = None):
        from neuroevo.cluster.connection import join
        from neuroevo.cluster.sharing import end_players
        from neuroevo.sessions.evaluators import require_ray

        require_ray(address)
        import ray

        self._leaves = join(address, sweep)
        end_players()  # of a process that was killed
        self._networks = networks
        self._running: dict[int, Any] = {}
        self._machines: dict[int, str] = {}
        self._train = ray.remote(_train)

    @override
    def start(self, number: int, config: Config, folder: Path, trust: bool, implementation: str | None) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        assert implementation is None, "load_sweep() has checked it"
        networks = None if self._networks is None else [*self._networks]
        self._machines[number] = self._machine()
        there = NodeAffinitySchedulingStrategy(self._machines[number], soft=True)
        # No core is reserved: trials of other sweeps would wait for it, which may take days.
        self._running[number] = self._train.options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote(
            config.tables(), str(folder), trust, networks, number, os.getcwd(), sys.argv
        )

    def _machine(self) -> str:
        """Return the machine with the fewest of this sweep's trials for each core. OSError: none has a core."""
        from neuroevo.cluster.connection import nodes

        trials = Counter(self._machines[number] for number in self._running)
        cores = {node["NodeID"]: node["Resources"].get("CPU", 0.0) for node in nodes() if node["Alive"]}
        able = [((1 + trials[name]) / count, random.random(), name) for name, count in cores.items() if count]
        if not able:
            raise OSError("no machine of the cluster offers a core")
        return min(able)[-1]

    @override
    def ended(self) -> dict[int, End]:
        import ray
        from ray.exceptions import RayError, RayTaskError, TaskCancelledError

        from neuroevo.cluster.connection import reason_of

        done, _ = (
            ray.wait(list(self._running.values()), num_returns=len(self._running), timeout=0)
            if self._running
            else ([], [])
        )
        over = {}
        for number, task in list(self._running.items()):
            if task in done:
                try:
                    over[number] = End(ray.get(task))
                except TaskCancelledError:
                    over[number] = End("was stopped")
                except RayError as error:
                    over[number] = End(reason_of(error), died=not isinstance(error, RayTaskError))
                del self._running[number]
        return over

    @override
    def stop(self, number: int) -> None:
        import ray

        ray.cancel(self._running[number])

    @override
    def close(self) -> None:
        import ray

        from neuroevo.cluster.connection import leave
        from neuroevo.cluster.sharing import end_players

        for task in self._running.values():
            ray.cancel(task)
        if self._running:
            ray.wait(list(self._running.values()), num_returns=len(self._running), timeout=_STOP_SECONDS)
        self._running.clear()
        end_players()
        if self._leaves:
            leave()


def _train(
    tables: Mapping[str, Any],
    folder: str,
    trust: bool,
    networks: Sequence[Network] | None,
    turn: int,
    where: str,
    command: Sequence[str],
) -> str:
    """Train a configuration in a folder, in a process of Ray's; return why it could not, "" if it could."""
    from neuroevo.config.load import make_config
    from neuroevo.sessions.evaluators import info_of, make_evaluator, make_shared_evaluator
    from neuroevo.sessions.folder import RunFolder
    from neuroevo.sessions.training_run import run

    os.chdir(where)  # configurations may name files and modules from where the sweep began
    try:
        config = make_config(tables)
        made = RunFolder.resume_or_create(folder, config, trust=trust)
        # Every trial has its own statistics of a reference batch, and players have no accelerator.
        if networks is None or config.network.needs_reference or config.environment.accelerated:
            evaluator = make_evaluator(made.config, made.reference_batch)
        else:
            evaluator = make_shared_evaluator(made.config, networks, turn)
        with evaluator, made.open(command, info_of(evaluator)):
            run(made.config, evaluator, made)
    except UserError as error:
        return str(error)
    return ""
