"""Programs that are measured in turns: our own, peers in a virtual environment of their own, and native ones."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PEERS = ROOT / "experiments" / "benchmarks" / "peers"
PEERS_PYTHON = ROOT / "build" / "peers" / "bin" / "python"
NATIVE = ROOT / "build" / "native"

_END_SECONDS = 10.0

Row = dict[str, Any]


class Program:
    """A process that has made all it needs and measures when it is asked; it waits meanwhile."""

    def __init__(self, command: Sequence[str]):
        self._command = [str(word) for word in command]
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        while (line := self._line()) != "ready\n":  # EnvPool, for one, may print before
            print(line, end="", file=sys.stderr)

    def measure(self, seconds: float) -> Row:
        """What the program measures in this number of seconds. RuntimeError: it has ended."""
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def _line(self) -> str:
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"ended with status {self._process.wait()}: {' '.join(self._command)}")
        return line

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it by the end of its input, so that it can end processes of its own; kills it if it does not."""
        self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def ours(what: str, **options: Any) -> Program:
    """One of the measurements of experiments.benchmarks.ours."""
    return Program([sys.executable, "-m", "experiments.benchmarks.ours", what, json.dumps(options)])


def peer(script: str, *arguments: object) -> Program:
    """A program of experiments/benchmarks/peers, run by the peers' Python."""
    return Program([PEERS_PYTHON, PEERS / script, *map(str, arguments)])


def native(name: str, *arguments: object) -> Row:
    """The JSON that a native benchmark prints."""
    command = [_native_path(name), *map(str, arguments)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def native_program(name: str, *arguments: object) -> Program:
    """A native benchmark that measures when it is asked."""
    return Program([_native_path(name), *arguments])


def _native_path(name: str) -> Path:
    """RuntimeError: it is not built."""
    path = next((path for path in (NATIVE / "bench" / name, NATIVE / name) if path.is_file()), None)
    if path is None:
        raise RuntimeError(f"the native program {name} is not built: `make bench` builds it")
    return path


def in_turns(measurements: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Every measurement once a round, in order."""
    found: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(rounds):
        for name, measure in measurements.items():
            found[name].append(measure())
    return found


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios, round by round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
