"""Where and with what a run was made: command, versions, git commit, machine."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from neuroevo.core.version import VERSION
from neuroevo.system.cores import usable_cores

_NVIDIA = Path("/proc/driver/nvidia/gpus")


def provenance(command: Sequence[str]) -> dict[str, Any]:
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
    found: dict[str, str | None] = {"python": platform.python_version(), "neuroevo": VERSION}
    for package in ("tensorflow", "numpy", "ale-py", "mujoco", "gymnasium"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def git_commit() -> str | None:
    """The commit of the checkout that this package lies in, "-dirty" added when files differ; None outside of one."""
    root = Path(__file__).resolve().parents[2]
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
    """Processor, cores this process may use, memory in MiB, models of the GPUs and operating system."""
    return {
        "cpu": _proc_value("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": usable_cores(),
        "memory_mib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "gpus": [_proc_value(path, "Model") or "unknown" for path in sorted(_NVIDIA.glob("*/information"))],
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.executable,
    }


def _proc_value(path: str | Path, key: str) -> str | None:
    """The first line's value of `key` in a file of "key : value" lines, or None."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), None)
