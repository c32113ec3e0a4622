"""The processes of a comparison: one for each contender and task, which does its jobs while the others wait.

So contenders take turns, seed by seed, and still nobody traces and compiles the same program for every seed.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from neuroevo.comparison.settings import Job
from neuroevo.system.files import write_atomically
from neuroevo.system.safe_path import python_command, safe_variables

WORKER = python_command("from neuroevo.comparison.worker import main; main(int(sys.argv[1]))")
_STOP_SECONDS = 10
_LAST_LINES = 5


class ProcessEnded(Exception):
    """A process ended before its job was done.

    Attributes:
        reason: How.
        output: The last lines that it printed.
    """

    def __init__(self, reason: str, output: list[str]):
        super().__init__(reason)
        self.reason = reason
        self.output = output


class Processes:
    """Starts processes as jobs need them; a context manager that ends them all."""

    def __init__(self, out: Path):
        """Starts nothing.

        Args:
            out: The comparison's folder, which is there.
        """
        self._jobs = out / "jobs"
        # What JAX compiles is there for the next process, and nothing that was compiled before the comparison.
        self._env = {**os.environ, **safe_variables(), "JAX_COMPILATION_CACHE_DIR": str((out / "jax").absolute())}
        self._running: dict[tuple[str, str], tuple[subprocess.Popen[bytes], Path]] = {}

    def do(self, job: Job, rows: Path) -> float:
        """Has a job done.

        Args:
            job: The job.
            rows: A file that gets a line for each of its results.

        Returns:
            The largest memory that its process has had resident so far, in 10^6 bytes.

        Raises:
            ProcessEnded: It could not do it.
        """
        told = rows.with_suffix(".job")
        write_atomically(told, json.dumps(job.table()).encode())
        process, output = self._process(job)
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        try:
            process.stdin.write(f"{json.dumps([str(told), str(rows)])}\n".encode())
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if answer:
            return json.loads(answer)["memory_kib"] * 1024 / 1e6
        del self._running[job.group]
        code = process.wait()
        reason = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lines = [line for line in output.read_text(errors="replace").splitlines() if line.strip()]
        raise ProcessEnded(reason, lines[-_LAST_LINES:])

    def end(self, group: tuple[str, str]) -> None:
        """Ends the process of a group, if there is one; it waits for a job, and ends as no more can come."""
        process, _ = self._running.pop(group, (None, None))
        if process is not None:
            _end(process)

    def _process(self, job: Job) -> tuple[subprocess.Popen[bytes], Path]:
        if job.group not in self._running:
            output = self._jobs / f"{job.name}.out"
            with output.open("wb") as file:
                process = subprocess.Popen(
                    [*WORKER, str(os.getpid())],
                    env=self._env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=file,
                    start_new_session=True,  # a Ctrl-C is for the comparison, which ends its processes
                )
            self._running[job.group] = process, output
        return self._running[job.group]

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process, _output in self._running.values():
            process.terminate()
        for process, _output in self._running.values():
            _end(process)
        self._running.clear()


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None and process.stdout is not None  # both are pipes
    process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
