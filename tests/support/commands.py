"""neuroevo commands with a ToyEvaluator, in separate processes without TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.runs import config, count_rows

ROOT = Path(__file__).parents[2]
TOY_CLI = (sys.executable, "-m", "tests.support.toy_cli")
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def toy_server() -> Iterator[Command]:
    """Yield a function that runs a command to its end, in a fork of a process with all imports."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy_server"],
        cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as server:  # fmt: skip

        def run(
            *arguments: object, largest_file: int | None = None, **options: object
        ) -> subprocess.CompletedProcess[str]:
            """options: of tests.support.toy_server.become()."""
            words = [str(argument) for argument in arguments]
            command = {"arguments": words, "largest_file": largest_file, **options}
            server.stdin.write(json.dumps(command, default=str) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            return subprocess.CompletedProcess(words, answer["code"], answer["stdout"], answer["stderr"])

        yield run
        server.stdin.close()


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
