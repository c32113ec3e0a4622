"""Record where and with what a run was made: command, versions, git commit and machine."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from neuroevo.core.version import VERSION
from neuroevo.system.processes import usable_cores

_NVIDIA = Path("/proc/driver/nvidia")


def provenance(command: Sequence[str]) -> dict[str, Any]:
    """Record where and with what a run is made.

    Args:
        command: The command line that starts the run, as a list of words.

    Returns:
        Plain values: command (quoted for a shell), started (local time, ISO 8601), versions, git_commit and machine.
    """
    return {
        "command": shlex.join(command),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": versions(),
        "git_commit": git_commit(),
        "machine": machine(),
    }


def versions() -> dict[str, str | None]:
    """Return the versions of Python, of this package and of the packages that results depend on.

    Returns:
        Versions by name; None for a package that is not installed.
    """
    found: dict[str, str | None] = {"python": platform.python_version(), "neuroevo": VERSION}
    return found | {name: _version(name) for name in ("tensorflow", "numpy", "ale-py", "mujoco", "gymnasium")}


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


@cache
def git_commit() -> str | None:
    """Return the commit of the git checkout that contains this package, cached at the first call.

    Returns:
        The commit's hash, with "-dirty" appended for uncommitted changes; None outside a checkout or if git fails.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        commit = _git(root, "rev-parse", "HEAD").strip()
        return commit + ("-dirty" if _git(root, "status", "--porcelain").strip() else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]  # leaves no index.lock if killed
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout


def machine() -> dict[str, Any]:
    """Describe this machine.

    Returns:
        cpu (model of the processor), cores (number of cores available to this process), memory_mib, gpus (models),
        nvidia_driver (version, or None), system (operating system and its release) and python (path of the
        interpreter).
    """
    driver = re.search(r"\d+(\.\d+)+", _proc_value(_NVIDIA / "version", "NVRM version") or "")
    return {
        "cpu": _proc_value("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": usable_cores(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "gpus": [_proc_value(path, "Model") or "unknown" for path in sorted(_NVIDIA.glob("gpus/*/information"))],
        "nvidia_driver": driver and driver[0],
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.executable,
    }


def _proc_value(path: str | Path, key: str) -> str | None:
    """Return the value of the first line that starts with `key`, in a file of "key : value" lines; else None."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), None)
