"""Where trials are trained: in processes of this machine, or as tasks of a Ray cluster (ray_tasks.py).

Either trains a configuration in a folder until its budget is spent, and resumes a run that the folder contains. Results
are read from the folder.
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
STOP_SECONDS = 30  # for a trial to store its state and end; it takes one or two
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
    def start(self, trial: Trial, config: Config) -> None:
        """Begin to train a trial in its folder, in which a run of this configuration may have begun.

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
        sweep: The sweep.
        lock: A descriptor that every process keeps open, so that none outlives its sweep unnoticed.
        program: The command that trains.
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
                start_new_session=True,  # a terminal's Ctrl-C is for the sweep, which passes it on
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
