"""The folder a run leaves behind.

config.toml     the configuration with every default filled in
info.json       command, seed, versions, git commit, machine
metrics.jsonl   one JSON object per finished generation
log.txt         what happened when
"""

from __future__ import annotations

import json
import logging
import os
import platform
import shlex
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import neuroevo
from neuroevo.config import Config
from neuroevo.errors import UserError
from neuroevo.metrics import Record, append_row

_FILES = ("config.toml", "info.json", "metrics.jsonl")
log = logging.getLogger("neuroevo")


class RunFolder:
    """A new run's folder; closing it closes the log."""

    def __init__(self, path: Path | str, config: Config, command: list[str], extra: dict[str, Any] | None = None):
        """Makes the folder and writes config.toml and info.json, with `extra` keys in the latter.

        UserError: the folder already holds a run or cannot be written.
        """
        self.path = Path(path)
        check_free(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / "config.toml").write_text(config.toml(), encoding="utf-8")
            facts = {**info(command), "seed": config.training.seed, **(extra or {})}
            (self.path / "info.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
            self._handler = logging.FileHandler(self.path / "log.txt", encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write to the run folder {self.path}: {error.strerror}") from error
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(self._handler)
        log.setLevel(logging.INFO)
        log.propagate = False

    def add(self, record: Record) -> None:
        """Writes a finished generation's record."""
        append_row(self.path / "metrics.jsonl", record)
        log.info("%s", describe(record))

    def close(self) -> None:
        """Closes the log."""
        log.removeHandler(self._handler)
        self._handler.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_free(path: Path | str) -> None:
    """UserError when a run is in the folder already or `path` is a file."""
    if Path(path).exists() and not Path(path).is_dir():
        raise UserError(f"{path} is a file, expected a folder or nothing")
    for name in _FILES:
        if (Path(path) / name).exists():
            raise UserError(f"{path} already holds a run ({name} is there); give another folder with --out")


def default_path(config_path: Path | str) -> Path:
    """runs/<configuration's name>-<local time>, not there yet."""
    stem = f"{Path(config_path).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, again = Path("runs") / stem, 2
    while path.exists():
        path, again = Path("runs") / f"{stem}-{again}", again + 1
    return path


def describe(record: Record) -> str:
    """One line about a generation."""
    parts = [
        f"generation {record.generation}:",
        f"fitness mean {record.fitness.mean():.1f} max {record.fitness.max():.1f}",
    ]
    if record.validation is not None:
        parts.append(f"elite validation {record.validation:.1f}")
    if record.test_mean is not None:
        error = "" if record.test_standard_error is None else f" +- {record.test_standard_error:.1f}"
        parts.append(f"test {record.test_mean:.1f}{error}")
    parts.append(f"steps {record.steps_total:,}, {record.steps_per_s:,.0f}/s, {record.seconds_total:.1f} s")
    return " ".join(parts[:2]) + "".join(f", {part}" for part in parts[2:])


def info(command: list[str]) -> dict[str, Any]:
    """Where and with what a run was made, as plain values."""
    return {
        "command": shlex.join(command),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": versions(),
        "git_commit": git_commit(),
        "machine": machine(),
    }


def versions() -> dict[str, str | None]:
    """Versions of Python, this package and what results depend on; None for what is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version(), "neuroevo": neuroevo.__version__}
    for package in ("tensorflow", "numpy", "ale-py"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def git_commit() -> str | None:
    """The commit of the checkout that this package lies in, "-dirty" added when files differ; None outside of one."""
    root = Path(neuroevo.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD").strip()
        return commit + ("-dirty" if _git(root, "status", "--porcelain").strip() else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout


def machine() -> dict[str, Any]:
    """Processor, cores this process may use, memory in MiB and operating system."""
    return {
        "cpu": _proc_value("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.executable,
    }


def _proc_value(path: str, key: str) -> str | None:
    """The first line's value of `key` in a file of "key : value" lines, or None."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), None)
