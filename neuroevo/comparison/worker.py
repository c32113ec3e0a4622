"""One job of a comparison in a process of its own: `python -m neuroevo.comparison.worker PARENT JOB RESULT`.

JOB is a file with a Job as JSON; RESULT gets a line of JSON for each generation, batch size or fact, as soon as it is
known.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neuroevo.comparison import ours
from neuroevo.comparison.settings import Job
from neuroevo.system.parent import end_with


def main(parent: int, job: Path, result: Path) -> None:
    """Does the job.

    Args:
        parent: The id of the process that this one shall not outlive.
        job: A file.
        result: Another, which is made.
    """
    end_with(parent)
    chosen = Job.of(json.loads(job.read_text()))
    with result.open("w", encoding="utf-8") as file:

        def write(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()

        if chosen.contender in ("accelerated", "brax", "evosax", "bare"):
            from neuroevo.accelerated.start import start_jax

            start_jax(chosen.experiment.devices)
        if chosen.kind == "evolve":
            _evolve(chosen, result.with_suffix(".run"), lambda generation: write(asdict(generation)))
        else:
            for row in _throughput(chosen, result.parent) if chosen.kind == "throughput" else _differences(chosen):
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
    from neuroevo.accelerated.brax_simulator import BraxSimulator
    from neuroevo.accelerated.peers import rates
    from neuroevo.accelerated.peers.same_network import network_of

    simulator = BraxSimulator(job.experiment.task, job.experiment.backend)
    if job.contender == "bare":
        rate = rates.bare(simulator, width, devices)
    else:
        rate = rates.lanes(simulator, network_of(job.experiment), width, devices)
    return rates.median_rate(rate, job.seconds)


def _differences(job: Job) -> Iterator[dict[str, Any]]:
    from neuroevo.comparison.differences import differences

    for what, own, theirs in differences(job.experiment):
        yield {"what": what, "neuroevo": own, "brax": theirs}


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
