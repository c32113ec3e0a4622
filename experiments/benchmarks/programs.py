"""Programs that are measured in turns: neuroevo's, peers in a separate virtual environment, and native programs."""

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
    """Initialized process that waits and measures on request."""

    def __init__(self, command: Sequence[str]):
        self._command = [str(word) for word in command]
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        while (line := self._line()) != "ready\n":  # libraries such as EnvPool may print first
            print(line, end="", file=sys.stderr)

    def measure(self, seconds: float) -> Row:
        """Return the program's measurement of this number of seconds. Raise RuntimeError if it has ended."""
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
        """Close the program's input, so that it can end its own processes; kill the program if it does not end."""
        self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def ours(what: str, **options: Any) -> Program:
    """Start a measurement of experiments.benchmarks.ours."""
    return Program([sys.executable, "-m", "experiments.benchmarks.ours", what, json.dumps(options)])


def peer(script: str, *arguments: object) -> Program:
    """Start a program of experiments/benchmarks/peers with the peers' Python."""
    return Program([PEERS_PYTHON, PEERS / script, *map(str, arguments)])


def native(name: str, *arguments: object) -> Row:
    """Run a native benchmark and return the JSON that it prints."""
    command = [_native_path(name), *map(str, arguments)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def native_program(name: str, *arguments: object) -> Program:
    """Start a native benchmark that measures on request."""
    return Program([_native_path(name), *arguments])


def _native_path(name: str) -> Path:
    """Return the path of a native program. Raise RuntimeError if it is not built."""
    path = next((path for path in (NATIVE / "bench" / name, NATIVE / name) if path.is_file()), None)
    if path is None:
        raise RuntimeError(f"the native program {name} is not built: `make bench` builds it")
    return path


def in_turns(measurements: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Take each measurement once per round, in order."""
    found: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(rounds):
        for name, measure in measurements.items():
            found[name].append(measure())
    return found


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median over rounds of the ratios."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
