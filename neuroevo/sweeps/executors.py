"""Executors of trials: processes of this machine, or tasks of a Ray cluster (ray_tasks.py).

An executor trains a configuration in a folder until its budget is spent, and resumes a run that the folder contains.
Results are read from the folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from neuroevo.config.schema import Config
from neuroevo.sweeps.sweep import Sweep, Trial
from neuroevo.system.files import write_atomically
from neuroevo.system.safe_path import python_command

CHILD = python_command("from neuroevo.cli.child import run; run(sys.argv[1:])")
_OTHER = python_command("from neuroevo.cli.child import run_implementation; run_implementation(sys.argv[1:])")
STOP_SECONDS = 30  # time for a trial to store its state and end, which takes a second or two
_LAST_LINES = 5


class End(NamedTuple):
    """Result of a trial's process.

    Attributes:
        reason: Why it did not finish, "" if it did.
        died: Whether it was killed by a signal or lost with its machine, so that a retry may succeed.
    """

    reason: str = ""
    died: bool = False


class Executor(ABC):
    """Abstract base class of executors of trials."""

    @abstractmethod
    def start(self, trial: Trial, config: Config) -> None:
        """Start to train a trial in its folder, or resume the run of this configuration that the folder contains.

        Raises:
            OSError: The trial's files cannot be written, or the process cannot be started.
        """

    @abstractmethod
    def ended(self) -> dict[int, End]:
        """Return the results of the trials that have ended since the last call, by number."""

    @abstractmethod
    def stop(self, number: int) -> None:
        """Request that a trial stores its state and ends."""

    @abstractmethod
    def close(self) -> None:
        """Stop all trials and wait for them."""


class Processes(Executor):
    """Executor with a process of this machine per trial; its output goes to a file next to the trial's folder.

    Args:
        sweep: The sweep.
        lock: Descriptor that each process keeps open, so that the folder stays locked while any of them runs.
        program: The command that trains a trial.
    """

    def __init__(self, sweep: Sweep, lock: int, program: Sequence[str] = CHILD):
        self._sweep, self._lock, self._program = sweep, lock, program
        self._running: dict[int, tuple[subprocess.Popen[bytes], Path, int]] = {}

    @override
    def start(self, trial: Trial, config: Config) -> None:
        folder, parent, trust = self._sweep.out / trial.folder, str(os.getpid()), self._sweep.trust
        folder.parent.mkdir(parents=True, exist_ok=True)
        own, printed = (folder.with_name(folder.name + suffix) for suffix in (".toml", ".out"))
        write_atomically(own, config.toml().encode())
        command = [*self._program, parent, "train", str(own), "--resume", str(folder), *(["--trust"] if trust else [])]
        if implementation := self._sweep.implementations.get(trial.label):
            command = [*_OTHER, parent, implementation, str(own), str(folder), str(int(trust))]
        with printed.open("ab") as output:
            before = output.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that Ctrl-C reaches only the sweep, which stops its trials
                pass_fds=[self._lock],
            )
        self._running[trial.number] = process, printed, before

    @override
    def ended(self) -> dict[int, End]:
        codes = {number: process.poll() for number, (process, *_) in self._running.items()}
        over = {number: code for number, code in codes.items() if code is not None}
        return {number: _end(code, *self._running.pop(number)[1:]) for number, code in over.items()}

    @override
    def stop(self, number: int) -> None:
        self._running[number][0].terminate()

    @override
    def close(self) -> None:
        processes, deadline = [process for process, *_ in self._running.values()], time.monotonic() + STOP_SECONDS
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


def _end(code: int, printed: Path, before: int) -> End:
    if code == 0:
        return End()
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    with printed.open("rb") as file:
        file.seek(before)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return End("\n".join([how, *lines[-_LAST_LINES:]]), died=code < 0)
