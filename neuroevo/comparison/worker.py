"""A process of a comparison.

It reads a line of JSON for each job, [JOB, ROWS]: a file with a Job as JSON, and a file to make, which gets a line of
JSON for each generation, batch size or fact as soon as it is known. When the job is done it writes a line, too. It ends
with its input. What libraries print goes to the standard error.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neuroevo.comparison import ours
from neuroevo.comparison.settings import Job
from neuroevo.system.processes import end_with


def main(parent: int) -> None:
    """Does jobs.

    Args:
        parent: The id of the process that this one shall not outlive.
    """
    end_with(parent)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        for line in sys.stdin:
            told, rows = map(Path, json.loads(line))
            do(Job.of(json.loads(told.read_text())), rows)
            answers.write(json.dumps({"memory_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}) + "\n")
            answers.flush()


def do(job: Job, rows: Path) -> None:
    """Does a job.

    Args:
        job: The job.
        rows: Its file.
    """
    with rows.open("w", encoding="utf-8") as file:

        def write(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()

        if job.contender in ("accelerated", "brax", "evosax", "bare"):
            from neuroevo.accelerated.start import start_jax

            start_jax(job.experiment.devices)
        if job.kind == "evolve":
            _evolve(job, rows.with_suffix(".run"), lambda generation: write(asdict(generation)))
        else:
            for row in _throughput(job, rows.parent) if job.kind == "throughput" else _differences(job):
                write(row)


def _evolve(job: Job, folder: Path, report: Any) -> None:
    if job.contender == "brax":
        from neuroevo.accelerated.peers import brax_es

        brax_es.evolve(job.experiment, report)
    elif job.contender == "evosax":
        from neuroevo.accelerated.peers import evosax_es

        evosax_es.evolve(job.experiment, report)
    else:
        ours.evolve(job.contender, job.experiment, folder, report)


def _throughput(job: Job, models: Path) -> Iterator[dict[str, Any]]:
    """Steps per second at each batch size that is possible; models: see ours.environment()."""
    devices = job.experiment.devices
    for width in job.widths:
        if job.contender in ("accelerated", "bare"):
            used = min(devices, width // 2 if job.contender == "accelerated" else width)
            if not used or width % used:
                continue
            rate = _accelerated_rate(job, width, used)
        else:
            used = min(devices, width)
            if width % used:
                continue
            rate = ours.lane_rate(job.contender, job.experiment, width, job.seconds, models)
        yield {"width": width, "cores": used, "steps_per_s": rate}


def _accelerated_rate(job: Job, width: int, devices: int) -> float:
    from neuroevo.accelerated.brax_simulator import shared_simulator
    from neuroevo.accelerated.peers import rates
    from neuroevo.accelerated.peers.same_network import network_of

    simulator = shared_simulator(job.experiment.task, job.experiment.backend)
    if job.contender == "bare":
        rate = rates.bare(simulator, width, devices)
    else:
        rate = rates.lanes(simulator, network_of(job.experiment), width, devices)
    return rates.median_rate(rate, job.seconds)


def _differences(job: Job) -> Iterator[dict[str, Any]]:
    from neuroevo.comparison.differences import differences

    for what, own, theirs in differences(job.experiment):
        yield {"what": what, "neuroevo": own, "brax": theirs}
