"""Runs a suite: a process for each run, a given number at a time. A suite that was stopped continues its runs."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError, cannot_write
from neuroevo.core.problems import Problem, refuse
from neuroevo.runs import preflight
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import last_generation, rows_of
from neuroevo.runs.paths import CSV, check_free
from neuroevo.runs.provenance import machine
from neuroevo.runs.writer import last_session
from neuroevo.sweeps.report import FILES
from neuroevo.sweeps.status import Row, RunStatus, status_of
from neuroevo.sweeps.suite import Suite, SuiteRun
from neuroevo.sweeps.watcher import Failure, SuiteWatcher
from neuroevo.system.files import sweep, write_atomically
from neuroevo.system.safe_path import python_command

CHILD = python_command("from neuroevo.cli.child import run; run(sys.argv[1:])")
_POLL_SECONDS = 0.2
_STOP_SECONDS = 30  # for a run to store its state and end; it takes one or two
LOCK_SECONDS = 15  # for the runs of a suite that was killed to end, as child.py has them do
_LAST_LINES = 5
_SHOWN = ("test_mean", "validation_mean")  # columns of metrics.csv that watchers look at, and those never empty
_COUNTED = ("generation", "steps_total", "frames_total", "seconds_total")


class _Child:
    """A run's process and its progress so far."""

    def __init__(self, before: RunStatus, threads: int | None, program: Sequence[str], lock: int):
        """Starts it. OSError: its files cannot be written, or the machine has no room for another process."""
        self.run = before.run
        self._generation = len(before.rows) - 1
        self._seen: tuple[int, int] | None = None
        self._told = False  # that what is seen cannot be read
        self.process = self._start(_with_threads(before.run.config, threads), program, lock)

    def _start(self, config: Config, program: Sequence[str], lock: int) -> subprocess.Popen[bytes]:
        self.run.folder.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.run.beside(".toml"), config.toml().encode())
        trusting = ["--trust"] if self.run.trust else []
        with self.run.beside(".out").open("ab") as output:
            self._printed_before = output.tell()
            return subprocess.Popen(
                [*program, "train", str(self.run.beside(".toml")), "--resume", str(self.run.folder), *trusting],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a terminal's Ctrl-C is for the suite, which passes it on
                pass_fds=[lock],  # locked until the last run has ended, even if the suite is killed
            )

    def look(self, watcher: SuiteWatcher) -> RunStatus | Failure | None:
        """Tells `watcher` what is new. Returns the run's end once its process has ended, None before."""
        code = self.process.poll()
        row = self._news(watcher)
        if row is not None:
            watcher.generation(self.run, row)
        if code is None:
            return None
        now = status_of(self.run)
        if code == 0 and now.status == "finished":
            watcher.finished(now)
            return now
        failure = self._failure(code)
        watcher.failed(failure)
        return failure

    def _news(self, watcher: SuiteWatcher) -> Row | None:
        """The row of the last finished generation if it is another one than before."""
        try:
            status = (self.run.folder / CSV).stat()
            if (status.st_mtime_ns, status.st_size) == self._seen:
                return None
            self._seen = (status.st_mtime_ns, status.st_size)
            row = _last_row(self.run.folder)
        except OSError:  # not yet there; the run's own process reports what is wrong
            return None
        except UserError as error:
            if not self._told:
                watcher.unreadable(self.run, str(error))
            self._told = True
            return None
        if row is None or row["generation"] == self._generation:
            return None
        self._generation = int(row["generation"])
        return row

    def _failure(self, code: int) -> Failure:
        if code == 0:
            reason = "ended without an error but is not finished"
        elif code < 0:
            reason = f"was killed by {signal.Signals(-code).name}"
        else:
            reason = f"ended with exit code {code}"
        with self.run.beside(".out").open("rb") as file:
            file.seek(self._printed_before)
            lines = file.read().decode(errors="replace").splitlines()
        return Failure(self.run, reason, [line for line in lines if line.strip()][-_LAST_LINES:])


def _last_row(folder: Path) -> Row | None:
    """Return the last row of a run, None before there is one. UserError: it is damaged."""
    with Database(folder / DATABASE) as database:
        last = last_generation(database)
        return None if last < 0 else rows_of(database, last, fitness=False)[0]


def run_suite(suite: Suite, watcher: SuiteWatcher | None = None, child: Sequence[str] = CHILD) -> list[Failure]:
    """Runs the unfinished runs of a suite. KeyboardInterrupt passes through after all processes have ended.

    Args:
        suite: The suite.
        watcher: Hears how it goes.
        child: The program that is given this process's id and a command line of neuroevo.

    Returns:
        The failures, which do not stop the other runs.

    Raises:
        DiskError: There is no room for the folder.
        UserError: The folder cannot be written, another suite is running in it, or runs were found that cannot begin.
    """
    watcher = watcher or SuiteWatcher()
    program = [*child, str(os.getpid())]
    with _locked(suite.out) as lock:
        statuses = [status_of(run) for run in suite.runs]
        check_runs(statuses, f"the suite in {suite.out}")
        _sweep(suite)
        waiting = deque(each for each in statuses if each.status != "finished" or not _has_ended(each.run))
        threads = shares(min(suite.parallel, max(len(waiting), 1)))
        watcher.begin(statuses, len(threads))
        failures: list[Failure] = []
        children: dict[int, _Child] = {}  # by place, in [0, len(threads))
        try:
            while waiting or children:
                for place, share in enumerate(threads):
                    if waiting and place not in children:
                        before = waiting.popleft()
                        try:
                            children[place] = _Child(before, share, program, lock)
                        except OSError as error:
                            failures.append(_not_started(before.run, error))
                            watcher.failed(failures[-1])
                        else:
                            watcher.started(before.run, len(before.rows), share)
                time.sleep(_POLL_SECONDS)
                for place, running in list(children.items()):
                    outcome = running.look(watcher)
                    if outcome is not None:
                        del children[place]
                    if isinstance(outcome, Failure):
                        failures.append(outcome)
                watcher.tick()
        except BaseException:
            _stop([child.process for child in children.values()])
            raise
    return failures


def _has_ended(run: SuiteRun) -> bool:
    """Return whether a finished run was not killed between its last generation and its end."""
    with Database(run.folder / DATABASE) as database:
        return last_session(database) is None


def _sweep(suite: Suite) -> None:
    """Deletes the temporary files of a suite that was killed. Nobody else is writing: the folder is locked."""
    written = {suite.out: "|".join(map(re.escape, FILES))}
    written |= {run.folder.parent: r".+\.toml" for run in suite.runs}
    try:
        for path in (path for path in written if path.is_dir()):
            sweep(path, written[path])
    except OSError as error:
        raise cannot_write(f"to the suite's folder {suite.out}", error) from error


def _not_started(run: SuiteRun, error: OSError) -> Failure:
    where = f" ({error.filename})" if error.filename else ""
    return Failure(run, f"could not be started: {error.strerror or error}{where}", [])


def shares(parallel: int, cores: int | None = None) -> list[int | None]:
    """Divides the machine's cores among runs.

    Args:
        parallel: Number of runs at a time.
        cores: Cores of the machine; None asks the machine.

    Returns:
        Worker threads of each of these runs; None leaves the number to the run.
    """
    cores = cores or machine()["cores"]
    if parallel == 1:
        return [None]
    return [max(cores // parallel + (place < cores % parallel), 1) for place in range(parallel)]


def _with_threads(config: Config, threads: int | None) -> Config:
    """The configuration with this number of threads, unless it sets one itself."""
    if threads is None or config.hardware.threads is not None:
        return config
    return replace(config, hardware=replace(config.hardware, threads=threads))


@contextmanager
def _locked(out: Path) -> Iterator[int]:
    """A descriptor that keeps other suites from running in the folder as long as any process has it open."""
    check_free(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = os.open(out, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(f"to the suite's folder {out}", error) from error
    try:
        deadline = time.monotonic() + LOCK_SECONDS
        while not _try_lock(lock):
            if time.monotonic() > deadline:
                raise UserError(f"another suite is running in {out}")
            time.sleep(_POLL_SECONDS)
        yield lock
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Ends the processes: SIGTERM has them store their state; at another Ctrl-C or when time is up they are killed."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    try:
        for process in processes:
            process.wait(max(deadline - time.monotonic(), 0))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        for process in processes:
            process.kill()
            process.wait()


def check_runs(statuses: Sequence[RunStatus], source: str) -> None:
    """Checks the unfinished runs before any is started; each environment and each run to start from is tried once.

    Args:
        statuses: How far the runs are. One that another of them starts from need not be there yet.
        source: Where the runs come from, for the message.

    Raises:
        ConfigError: Some cannot begin; it has all problems.
    """
    folders = {each.run.folder.resolve() for each in statuses}
    found: list[Problem] = []
    tried: list[object] = []
    for each in (each for each in statuses if each.status != "finished"):
        config = each.run.config
        start = config.training.start_from
        from_start = each.status == "not started" and start is not None and Path(start).resolve() not in folders
        what = (config.env, (start, config.network, config.algorithm) if from_start else None)
        if what not in tried:
            tried.append(what)
            found += [each for each in preflight.problems(config, from_start, each.run.trust) if each not in found]
    refuse(found, source)
