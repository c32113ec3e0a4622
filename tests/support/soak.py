"""Train for minutes in one process and check for growing memory and files: `make soak MINUTES=10`.

    python -m tests.support.soak --minutes 10 [--kind KIND ...] [--leak QUANTITY ...]

In the first half of the time short runs are started, resumed, inspected (rows, evaluation, a video) and deleted, one of
each kind after another; then each kind gets a share of the other half for one long run. growth.py defines the sampled
quantities and the rule for growth; the tables are printed, and the exit code is 1 if anything grows.

What must grow with the number of generations is divided by it: run.db, metrics.csv, events and log have rows for each,
so that files are sampled as bytes per generation. Chains of mutations, by which a genetic algorithm's genomes get
longer with every generation, are in memory: it may grow by CHAIN for each. States and the write-ahead log must not grow
at all. ns_es keeps a limited archive here, and then nothing of it grows.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

import neuroevo
from neuroevo.config.schema import Config
from neuroevo.rollout.tensorflow_import import skip_optional_imports
from neuroevo.runs.database import DATABASE
from tests.support.databases import query
from tests.support.growth import LEAST_SAMPLES, OF_PROCESS, Quantity, Samples, growing, of_process
from tests.support.runs import config

CHAIN = 4096
"""Bytes by which a long run of a genetic algorithm may grow for each generation."""
OF_FOLDER = (Quantity("files, bytes per generation", 1, 0.1), Quantity("states and log, bytes", 4096, 0.1))
SHORT = 20  # generations of a short run
SECONDS, APART = 0.25, 20  # between samples of a long run: at least that time, and so many generations
SELDOM = 8  # rounds between two short runs of TensorFlow's engine, each of which takes seconds
_GA = {"name": "ga", "population": 8, "parents": 3, "sigma": 0.01, "validation_candidates": 2}
_ES = {"name": "es", "population": 8}
_TRAINING = {"max_episode_steps": 16, "test_episodes": 2, "validation_episodes": 2}
_MLP = {"name": "mlp", "hidden": [6]}
_MAZE: dict[str, Any] = {"env": {"name": "HardMaze-v0"}, "network": _MLP}
_WORKERS = {"name": "gymnasium:CartPole-v1", "options": {"workers": 2}}
KINDS: dict[str, dict[str, Any]] = {  # for tests.support.runs.config()
    "ga": {**_MAZE, "algorithm": _GA},
    "es": {"env": {"name": "Hopper-v5"}, "network": {**_MLP, "normalize_observations": True}, "algorithm": _ES},
    "ns_es": {**_MAZE, "algorithm": {**_ES, "name": "ns_es", "centers": 2, "k": 3, "archive_limit": 50}},
    "game": {
        "env": {"name": "riverraid"},
        "network": {"name": "model", "dtype": "int8"},
        "algorithm": _GA,
        "training": {"test_episodes": 0},  # they have no cut-off
    },
    "workers": {"env": _WORKERS, "network": _MLP, "algorithm": _ES},
    "tensorflow": {**_MAZE, "algorithm": _ES, "hardware": {"engine": "tensorflow"}},
}


def made(kind: str, generations: int) -> Config:
    """The configuration of a kind with that many generations."""
    changes = KINDS[kind]
    training = {**_TRAINING, **changes.get("training", {}), "generations": generations}
    hardware = {"threads": 2, **changes.get("hardware", {})}
    more = {"hardware": hardware, "logging": {"trackers": ["tensorboard"]}}
    return config(**{**changes, **more, "training": training})


class Over(Exception):  # noqa: N818 (no error)
    """Ends a run."""


class Soak:
    """The samples so far.

    Attributes:
        tables: Of the short runs together, then of each long run.
    """

    def __init__(self, folder: Path, leaks: Sequence[Callable[[], object]] = ()):
        """folder: Where the runs go. leaks: called with every sample."""
        self.tables: list[Samples] = []
        self._folder, self._leaks = folder, leaks

    def _leak(self) -> None:
        for leak in self._leaks:
            leak()

    def short_runs(self, kinds: list[str], minutes: float) -> None:
        """Start, resume, inspect and delete runs until the time is over."""
        samples, played, number, end = Samples("short runs", OF_PROCESS), 0, 0, time.monotonic() + 60 * minutes
        self.tables.append(samples)
        while time.monotonic() < end or number < LEAST_SAMPLES:
            for kind in kinds:
                if kind != "tensorflow" or number % SELDOM == 0:
                    self._short_run(kind)
                    played += SHORT
            number += 1
            self._leak()
            samples.add(played, of_process())

    def _short_run(self, kind: str) -> None:
        path = self._folder / "short"
        neuroevo.train(made(kind, generations=SHORT // 2), out=path)
        run = neuroevo.train(made(kind, generations=SHORT), out=path, resume=True)
        assert len(run.rows()) == SHORT
        run.evaluate(episodes=3, max_episode_steps=16)
        if kind == "game":
            run.render(path / "elite.gif", max_episode_steps=4)
        for file in sorted(path.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        path.rmdir()

    def long_run(self, kind: str, minutes: float) -> None:
        """Train until the time is over."""
        path, settings, end = self._folder / kind, made(kind, generations=10**9), time.monotonic() + 60 * minutes
        chains = settings.algorithm_name == "ga"
        samples, due, least = Samples(f"long run of {kind}", (*OF_PROCESS, *OF_FOLDER)), 0.0, 0
        self.tables.append(samples)

        def sample(record: Any) -> None:
            nonlocal due, least
            count = record.generation + 1
            if time.monotonic() < due or count < least:
                return
            self._leak()
            due, least = time.monotonic() + SECONDS, count + APART
            in_memory, *rest = of_process()
            of_files, of_states = _sizes(path)
            if chains:
                in_memory -= CHAIN * count / 2**20
            samples.add(count, [in_memory, *rest, of_files / count, of_states])
            if time.monotonic() > end and len(samples.generations) >= LEAST_SAMPLES:
                raise Over

        with suppress(Over):
            neuroevo.train(settings, out=path, callbacks=[sample])


def _sizes(path: Path) -> tuple[int, int]:
    """Return the bytes of a run's files, and of its state for resuming, with the write-ahead log."""
    log = path / f"{DATABASE}-wal"
    files = sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and DATABASE not in file.name)
    arrays = query(path, "SELECT total(length(data)) FROM arrays WHERE state IS NOT NULL")[0][0]
    values = query(path, "SELECT total(length(value)) FROM states")[0][0]
    return files + (path / DATABASE).stat().st_size, int(arrays + values) + log.stat().st_size


_kept: list[Any] = []  # what was leaked
_NOWHERE = subprocess.DEVNULL  # not our own output, which would last as long as they do
LEAKS: dict[str, Callable[[], object]] = {
    "memory": lambda: _kept.append(os.urandom(1 << 22)),
    "temporary files": lambda: tempfile.mkdtemp(),
    "threads": lambda: threading.Thread(target=time.sleep, args=[600], daemon=True).start(),
    "descriptors": lambda: _kept.append(os.open(os.devnull, os.O_RDONLY)),
    "child processes": lambda: _kept.append(subprocess.Popen(["sleep", "60"], stdout=_NOWHERE, stderr=_NOWHERE)),
}


def main(
    minutes: float = 10,
    kind: Annotated[list[str] | None, typer.Option(help=f"Of {', '.join(KINDS)}; all if not given.")] = None,
    leak: Annotated[list[str] | None, typer.Option(help=f"Leak one with every sample: {', '.join(LEAKS)}.")] = None,
) -> None:
    """Train, print the tables, and exit with 1 if anything grows."""
    skip_optional_imports()
    kinds, started = kind or list(KINDS), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="neuroevo-soak-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = str(Path(folder, "temporary"))
        Path(tempfile.tempdir).mkdir()
        soak = Soak(Path(folder), [LEAKS[each] for each in leak or []])
        soak.short_runs(kinds, minutes / 2)
        for each in kinds:
            soak.long_run(each, minutes / 2 / len(kinds))
        tempfile.tempdir = None
    for samples in soak.tables:
        print(samples.table())
    found = growing(soak.tables)
    print(f"{(time.monotonic() - started) / 60:.1f} minutes; growing: {'; '.join(found) or 'nothing'}")
    raise typer.Exit(int(bool(found)))


if __name__ == "__main__":
    typer.run(main)
