"""Reports on the machines of a Ray cluster, for `neuroevo cluster check`."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from neuroevo.cluster.connection import Node, is_head, nodes, reason_of
from neuroevo.cluster.origin import check_origin, origin
from neuroevo.native import library

_ANSWER_SECONDS = 60.0  # a worker process has to start, and imports neuroevo
_LEAST_SHARED_MIB = 256  # size of /dev/shm, which holds a generation's table and center


@dataclass(frozen=True)
class MachineReport:
    """Report on a machine of the cluster.

    Attributes:
        host: Host name as Ray reports it.
        is_head: Whether the machine is the cluster's head.
        cores: Number of CPUs that it offers Ray.
        why_not: Why it cannot play; "" if it can.
        warnings: Conditions that would make it slow or unreliable.
        details: Details reported by the machine: host, python, gpu, shared_mib, and milliseconds, the round-trip time.
    """

    host: str
    is_head: bool
    cores: int
    why_not: str
    warnings: tuple[str, ...]
    details: Mapping[str, Any]


def probe() -> list[MachineReport]:
    """Report on each live machine of the cluster that this process has joined, the head first."""
    expected = origin()
    remote = ray.remote(_own)
    asked = []
    for node in nodes():
        if node["Alive"]:
            where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = remote.options(num_cpus=0, max_retries=0, scheduling_strategy=where)
            asked.append((node, task, task.remote(expected)))
    reports = [_report(node, task, answer, expected) for node, task, answer in asked]
    return sorted(reports, key=lambda report: (not report.is_head, report.host))


def _report(node: Node, task: Any, answer: Any, expected: Mapping[str, str]) -> MachineReport:
    host, cores, details, why_not = node["NodeManagerHostname"], int(node["Resources"].get("CPU", 0)), {}, ""
    try:
        details = ray.get(answer, timeout=_ANSWER_SECONDS)
        begun = time.perf_counter()
        ray.get(task.remote(expected), timeout=_ANSWER_SECONDS)
        details["milliseconds"] = 1000 * (time.perf_counter() - begun)
    except GetTimeoutError:
        why_not = f"no response within {_ANSWER_SECONDS:g} s"
    except RayError as error:
        why_not = reason_of(error)
    warnings = []
    if cores < 1:
        why_not = why_not or "it offers Ray no CPU"
    if details.get("shared_mib", _LEAST_SHARED_MIB) < _LEAST_SHARED_MIB:
        warnings.append(f"/dev/shm has {details['shared_mib']} MiB, expected at least {_LEAST_SHARED_MIB}")
    return MachineReport(host, is_head(node), cores, why_not, tuple(warnings), details)


def _own(expected: Mapping[str, str]) -> dict[str, Any]:
    """Return details of this machine.

    Raises:
        UserError: Its versions or builds differ from the driver's.
    """
    check_origin(expected)
    library.core()
    shared = shutil.disk_usage("/dev/shm").total // 2**20 if os.path.isdir("/dev/shm") else 0
    return {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "gpu": library.gpu().name,
        "shared_mib": shared,
    }
