"""Does the jobs of a comparison one after another, each in a process of its own. What was done is not done again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroevo.comparison.energy import gpu_joules
from neuroevo.comparison.settings import Comparison, Job
from neuroevo.core.errors import cannot_write
from neuroevo.system.files import write_atomically

WORKER = (sys.executable, "-m", "neuroevo.comparison.worker")
_STOP_SECONDS = 10
_LAST_LINES = 5


@dataclass(frozen=True)
class JobResult:
    """What came of a job.

    Attributes:
        job: The job.
        rows: What its process wrote, a table for each generation, batch size or difference.
        seconds: Wall time of the process, its start included.
        memory_mb: The largest memory that it had resident, in 10^6 bytes.
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
        KeyboardInterrupt: After the process has ended.
    """
    failures: list[JobFailure] = []
    for job in comparison.jobs:
        if result_of(job, comparison.out) is not None:
            continue
        on_start(job)
        try:
            end = _do(job, comparison.out)
        except OSError as error:
            raise cannot_write(f"to the comparison's folder {comparison.out}", error) from error
        if isinstance(end, JobFailure):
            failures.append(end)
        on_end(end)
    return failures


def _do(job: Job, out: Path) -> JobResult | JobFailure:
    jobs = out / "jobs"
    jobs.mkdir(parents=True, exist_ok=True)
    told, rows, output = (jobs / f"{job.name}.{suffix}" for suffix in ("job", "rows", "out"))
    run = rows.with_suffix(".run")
    if run.exists():
        shutil.rmtree(run)  # of a job that was interrupted, or was another one
    write_atomically(told, json.dumps(job.table()).encode())
    # What JAX compiles for one seed is there for the next, and nothing that was compiled before the comparison.
    env = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str((out / "jax").absolute())}
    command = [*WORKER, str(os.getpid()), str(told), str(rows)]
    joules, begun = gpu_joules(), time.perf_counter()
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
        code, kilobytes = _wait(process)
    seconds, after = time.perf_counter() - begun, gpu_joules()
    if code:
        reason = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
        return JobFailure(job, reason, lines[-_LAST_LINES:])
    used = None if joules is None or after is None else after - joules
    result = JobResult(job, _rows(rows), seconds, kilobytes * 1024 / 1e6, used)
    table = {
        "job": job.table(),
        "rows": result.rows,
        "seconds": round(seconds, 3),
        "memory_mb": round(result.memory_mb, 1),
        "joules": used,
    }
    write_atomically(_file(job, out), json.dumps(table, indent=1).encode())
    return result


def _wait(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """The exit code, and the largest resident memory in KiB; an interrupt ends the process first."""
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss


def _rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _file(job: Job, out: Path) -> Path:
    return out / "jobs" / f"{job.name}.json"


def done(jobs: Sequence[Job], out: Path) -> list[JobResult]:
    """What came of all jobs that are done."""
    return [result for result in (result_of(job, out) for job in jobs) if result is not None]
