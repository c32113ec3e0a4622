"""Command lines of neuroevo with a ToyEvaluator, in processes of their own that import no TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.runs import config, count_rows

ROOT = Path(__file__).parents[2]
TOY_CLI = (sys.executable, "-m", "tests.support.toy_cli")
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def toy_server() -> Iterator[Command]:
    """A function that runs a command line to its end, in a fork of a process that has imported what it needs."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.toy_server"],
        cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as server:  # fmt: skip

        def run(
            *arguments: object,
            largest_file: int | None = None,
            folder: Path | None = None,
            variables: Mapping[str, str] | None = None,
            toy: bool = True,
        ) -> subprocess.CompletedProcess[str]:
            words = [str(argument) for argument in arguments]
            around = {"folder": folder and str(folder), "variables": dict(variables or {}), "toy": toy}
            server.stdin.write(json.dumps({"arguments": words, "largest_file": largest_file, **around}) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            return subprocess.CompletedProcess(words, answer["code"], answer["stdout"], answer["stderr"])

        yield run
        server.stdin.close()


def start_endless(
    path: Path, program: Sequence[str] = (), terminal: int | None = None, **options: Any
) -> subprocess.Popen[Any]:
    """Starts a run in a process of its own that goes on for ever; it has some generations when this returns.

    program: what runs the command, such as nohup. terminal: a descriptor of the one that the process writes to.
    """
    file = path.with_suffix(".toml")
    file.write_text(config(training={"generations": 10**6}, checkpoints={"every": 10**6}).toml())
    process = subprocess.Popen([*program, *TOY_CLI, "train", file, "--out", path], cwd=ROOT, **options)
    wait_for_rows(path, process, 5, terminal)
    return process


def wait_for_rows(path: Path, process: subprocess.Popen[Any], count: int, terminal: int | None = None) -> None:
    """Waits until the run has this number of them; meanwhile a terminal shows what it gets."""
    deadline = time.monotonic() + 60
    while count_rows(path) < count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
        with suppress(BlockingIOError):
            while terminal is not None:
                os.read(terminal, 4096)
