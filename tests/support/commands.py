"""neuroevo commands with a ToyEvaluator, in separate processes without TensorFlow."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.fork_server import ask, fork_server
from tests.support.runs import config, count_rows

ROOT = Path(__file__).parents[2]
TOY_CLI = (sys.executable, "-m", "tests.support.toy_cli")
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def toy_server() -> Iterator[Command]:
    """Yield a function that runs a command to its end, in a fork of a process with all imports."""
    with fork_server() as address:

        def run(*arguments: object, real: bool = False, **options: object) -> subprocess.CompletedProcess[str]:
            """real: whether episodes are played, not by a ToyEvaluator. options: of fork_server.become()."""
            words = [str(argument) for argument in arguments]
            (out, own_out), (err, own_err) = os.pipe(), os.pipe()
            nothing = os.open(os.devnull, os.O_RDONLY)
            with ask(address, {"arguments": words, "toy": not real, **options}, [nothing, own_out, own_err]) as server:
                for each in (nothing, own_out, own_err):
                    os.close(each)
                with ThreadPoolExecutor(2) as readers:
                    stdout, stderr = readers.map(_read, (out, err))
                return subprocess.CompletedProcess(words, int(server.recv(8)), stdout, stderr)

        yield run


def _read(pipe: int) -> str:
    with open(pipe, encoding="utf-8", newline="") as file:
        return file.read()


def start_endless(
    path: Path, program: Sequence[str] = (), terminal: int | None = None, **options: Any
) -> subprocess.Popen[Any]:
    """Start a run without a budget in a separate process; it has some generations when this returns.

    program: wrapper of the command, such as nohup. terminal: descriptor of the terminal that the process writes to.
    """
    file = path.with_suffix(".toml")
    file.write_text(config(training={"generations": 10**6}, checkpoints={"every": 10**6}).toml())
    process = subprocess.Popen([*program, *TOY_CLI, "train", file, "--out", path], cwd=ROOT, **options)
    wait_for_rows(path, process, 5, terminal)
    return process


def wait_for_rows(path: Path, process: subprocess.Popen[Any], count: int, terminal: int | None = None) -> None:
    """Wait until the run has this number of generations, while reading the terminal."""
    deadline = time.monotonic() + 60
    while count_rows(path) < count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
        with suppress(BlockingIOError):
            while terminal is not None:
                os.read(terminal, 4096)
