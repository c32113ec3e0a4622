"""Does the jobs of a comparison one after another. What was done is not done again."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroevo.comparison.energy import gpu_joules
from neuroevo.comparison.processes import ProcessEnded, Processes
from neuroevo.comparison.settings import Comparison, Job
from neuroevo.core.errors import cannot_write
from neuroevo.system.files import write_atomically


@dataclass(frozen=True)
class JobResult:
    """What came of a job.

    Attributes:
        job: The job.
        rows: What its process wrote, a table for each generation, batch size or difference.
        seconds: Wall time; of its process's first job, the start included.
        memory_mb: The largest memory that its process had resident until then, in 10^6 bytes.
        joules: What GPUs used meanwhile; None where nobody counts it.
    """

    job: Job
    rows: list[dict[str, Any]]
    seconds: float
    memory_mb: float
    joules: float | None


@dataclass(frozen=True)
class JobFailure:
    """A job that failed.

    Attributes:
        job: The job.
        reason: How its process ended.
        output: The last lines that it printed.
    """

    job: Job
    reason: str
    output: list[str]


def result_of(job: Job, out: Path) -> JobResult | None:
    """What came of a job earlier.

    Args:
        job: The job.
        out: The comparison's folder.

    Returns:
        None if it was not done, or was another one, as a changed file describes it.
    """
    try:
        table = json.loads(_file(job, out).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if table.pop("job") != job.table():
        return None
    return JobResult(job, **table)


def run_jobs(
    comparison: Comparison, on_start: Callable[[Job], None], on_end: Callable[[JobResult | JobFailure], None]
) -> list[JobFailure]:
    """Does what is not done yet.

    Args:
        comparison: The comparison.
        on_start: Called before each job.
        on_end: Called after it.

    Returns:
        The jobs that failed, which do not stop the others.

    Raises:
        UserError: The folder cannot be written.
        DiskError: The disk is full or broken.
        KeyboardInterrupt: After all processes have ended.
    """
    failures: list[JobFailure] = []
    to_do = [job for job in comparison.jobs if result_of(job, comparison.out) is None]
    try:
        (comparison.out / "jobs").mkdir(parents=True, exist_ok=True)
        with Processes(comparison.out) as processes:
            for place, job in enumerate(to_do):
                on_start(job)
                end = _do(job, comparison.out, processes)
                if job.group not in {later.group for later in to_do[place + 1 :]}:
                    processes.end(job.group)
                if isinstance(end, JobFailure):
                    failures.append(end)
                on_end(end)
    except OSError as error:
        raise cannot_write(f"to the comparison's folder {comparison.out}", error) from error
    return failures


def _do(job: Job, out: Path, processes: Processes) -> JobResult | JobFailure:
    rows = out / "jobs" / f"{job.name}.rows"
    run = rows.with_suffix(".run")
    if run.exists():
        shutil.rmtree(run)  # of a job that was interrupted, or was another one
    joules, begun = gpu_joules(), time.perf_counter()
    try:
        memory_mb = processes.do(job, rows)
    except ProcessEnded as end:
        return JobFailure(job, end.reason, end.output)
    seconds, after = time.perf_counter() - begun, gpu_joules()
    used = None if joules is None or after is None else after - joules
    result = JobResult(job, _rows(rows), seconds, memory_mb, used)
    table = {
        "job": job.table(),
        "rows": result.rows,
        "seconds": round(seconds, 3),
        "memory_mb": round(result.memory_mb, 1),
        "joules": used,
    }
    write_atomically(_file(job, out), json.dumps(table, indent=1).encode())
    return result


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _file(job: Job, out: Path) -> Path:
    return out / "jobs" / f"{job.name}.json"


def done(jobs: Sequence[Job], out: Path) -> list[JobResult]:
    """What came of all jobs that are done."""
    return [result for result in (result_of(job, out) for job in jobs) if result is not None]
