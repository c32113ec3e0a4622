"""Run a sweep: a number of trials in parallel, wherever its executor trains them. The same call resumes it."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError, cannot_write
from neuroevo.core.extras import require
from neuroevo.core.problems import refuse
from neuroevo.runs.paths import CSV, check_free, is_run
from neuroevo.sessions import preflight
from neuroevo.sweeps.checks import probe
from neuroevo.sweeps.executors import CHILD, End, Executor, Processes
from neuroevo.sweeps.implementations import Row, rows_in
from neuroevo.sweeps.pbt import train_population
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import Status, Sweep, Trial
from neuroevo.system import files
from neuroevo.training.time_left import share_done

_POLL_SECONDS = 0.2
_MOST_DEATHS = 3  # of a trial's process; each time the trial resumes from its newest state
LOCK_SECONDS = 15.0  # for the processes of a sweep that was killed to end


class SweepWatcher:
    """Receiver of the events of `run_sweep`. This one ignores them."""

    def begin(self, trials: Sequence[Trial], total: int, parallel: int) -> None:
        """Receive the trials that are known, how many there will be, and how many are trained in parallel."""

    def started(self, trial: Trial, resumes: bool) -> None:
        """Receive a trial that a process begins to train, or resumes where its run exists already."""

    def result(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Receive the numbers of a trial's last generation, as metrics.csv has them, after one or more generations."""

    def unreadable(self, trial: Trial, reason: str) -> None:
        """Receive, once, why a trial's run cannot be read, so that its generations are not reported."""

    def ended(self, trial: Trial) -> None:
        """Receive a trial that is finished, was stopped by the pruner, or has failed."""

    def tick(self) -> None:
        """Do what is to be done several times per second."""


@dataclass
class _Running:
    """A trial that is trained."""

    trial: Trial
    generations: int | None  # after which this part of it ends; None: at the budgets of its configuration
    rows: int = 0  # of its run that have been seen
    last: Row = field(default_factory=dict)  # of these rows
    pruned: bool = False
    deaths: int = 0  # of its processes
    seen: tuple[int, int] | None = None  # time and size of metrics.csv when the rows were read
    unreadable: bool = False  # as the watcher was told


def run_sweep(sweep: Sweep, watcher: SweepWatcher | None = None, program: Sequence[str] = CHILD) -> list[Trial]:
    """Run the trials of a sweep that are not over. KeyboardInterrupt passes through after all trials have ended.

    Args:
        sweep: The sweep.
        watcher: Notified of its progress.
        program: The command that trains a trial in a process.

    Returns:
        All trials as they ended. A failed one does not stop the others.

    Raises:
        ConfigError: The folder contains another sweep, or a trial cannot start; all problems.
        NotTrustedError: The sweep in the folder was not begun here by this user.
        UserError: What a sweep needs is not installed, its folder cannot be used, or there is no such cluster.
    """
    require("sweep", "optuna")
    check_free(sweep.out)
    try:
        sweep.out.mkdir(parents=True, exist_ok=True)
        with _locked(sweep.out) as lock:
            study = Study(sweep.out, sweep.trust, new=True)
            study.begin(sweep, lambda trial: _is_over(sweep, trial))
            for place in {sweep.out, *((sweep.out / trial.folder).parent for trial in study.trials())}:
                if place.is_dir():  # what a killed process has left of its trials' files and of the report's
                    files.sweep(place, r".+\.(?:toml|txt|csv|png|pdf)")
            return _Driver(sweep, study, watcher or SweepWatcher(), lock, program).run()
    except OSError as error:
        raise cannot_write(f"to the sweep's folder {sweep.out}", error) from error


class _Driver:
    def __init__(self, sweep: Sweep, study: Study, watcher: SweepWatcher, lock: int, program: Sequence[str]):
        self._sweep, self._study, self._watcher = sweep, study, watcher
        self._lock, self._program = lock, program

    def run(self) -> list[Trial]:
        sweep, known = self._sweep, self._study.trials(self._sweep)
        self._watcher.begin(known, sweep.trials, sweep.settings.parallel)
        if sum(trial.status in ("finished", "stopped") for trial in known) < sweep.trials:
            self._check(known)
            executor = self._executor()
            try:
                if sweep.settings.search == "pbt":
                    for _ in self._next():  # all of them begin before one is trained
                        pass
                    train_population(sweep, self._study, lambda trials, end: self._play(executor, trials, end))
                else:
                    self._play(executor, self._next())
            finally:
                executor.close()
        return self._study.trials(sweep)

    def _check(self, known: Sequence[Trial]) -> None:
        """Try what trials begin with once, before any is started. ConfigError: some cannot begin; all problems."""
        sweep, found, tried = self._sweep, [], []
        folders = {(sweep.out / trial.folder).resolve() for trial in sweep.points}
        begun = {trial.number for trial in known if is_run(sweep.out / trial.folder)}
        configs = [sweep.config(trial) for trial in sweep.points if trial.number not in begun]
        if not sweep.points:
            accepted, _ = probe(sweep.space, *sweep.tables.values())
            configs = [sweep.base, *(config for _, _, config in accepted)]
        for config in configs:
            start = config.training.start_from
            from_start = start is not None and Path(start).resolve() not in folders
            what = (config.env, (start, config.network, config.algorithm) if from_start else None)
            if what not in tried:
                tried.append(what)
                problems = preflight.problems(config, from_start, sweep.trust)
                found += [problem for problem in problems if problem not in found]
        refuse(found, str(sweep.out))

    def _executor(self) -> Executor:
        chosen = self._sweep.settings
        if not chosen.shared and chosen.cluster == "none":
            return Processes(self._sweep, self._lock, self._program)
        address = "local" if chosen.cluster == "none" else chosen.cluster
        require("cluster", "ray")
        from neuroevo.sweeps.ray_tasks import RayTasks

        return RayTasks(self._sweep, address)

    def _next(self) -> Iterator[Trial]:
        """Yield the trials of an interrupted process, and then those that wait or are chosen."""
        yield from (trial for trial in self._study.trials(self._sweep) if trial.status == "running")
        while True:
            trials = self._study.trials(self._sweep)
            if len(trials) >= self._sweep.trials and all(trial.status != "waiting" for trial in trials):
                return
            yield self._study.ask(self._sweep)

    def _play(self, executor: Executor, trials: Iterable[Trial], generations: int | None = None) -> None:
        """Train trials until they have so many generations; None: to a budget of their configurations."""
        source, running, more = iter(trials), dict[int, _Running](), True
        while more or running:
            while more and len(running) < self._sweep.settings.parallel:
                trial = next(source, None)
                more = trial is not None
                if trial is not None and self._start(executor, each := _Running(trial, generations)):
                    running[trial.number] = each
            time.sleep(_POLL_SECONDS)
            over = executor.ended()  # before their rows are read: then these are all
            for number, each in list(running.items()):
                self._news(executor, each, number in over)
                if number in over and self._ended(executor, each, over[number]):
                    del running[number]
            self._watcher.tick()

    def _start(self, executor: Executor, each: _Running) -> bool:
        """Start a trial's process; return False if it cannot be, which is then noted."""
        resumes = is_run(self._sweep.out / each.trial.folder)
        try:
            executor.start(each.trial, self._sweep.config(each.trial, each.generations))
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            reason = f"could not be started: {error.strerror or error}{where}"
            self._watcher.ended(self._study.tell(each.trial.number, "failed", reason=reason))
            return False
        self._watcher.started(each.trial, resumes)
        return True

    def _news(self, executor: Executor, each: _Running, over: bool) -> None:
        """Report the rows that are new, and stop the trial where the pruner ends it."""
        folder = self._sweep.out / each.trial.folder
        try:
            status = (folder / CSV).stat()
        except OSError:  # not yet there
            return
        seen = status.st_mtime_ns, status.st_size
        if each.pruned or (seen == each.seen and not over):
            return
        each.seen = seen
        try:
            rows = rows_in(folder, each.rows)
        except UserError as error:
            if not each.unreadable:
                self._watcher.unreadable(each.trial, str(error))
            each.unreadable = True
            return
        for row in rows:
            each.rows, each.last = each.rows + 1, row
            if self._study.report(each.trial.number, each.rows, self._sweep.value(row)) and not self._is_spent(each):
                each.pruned = True
                if not over:
                    executor.stop(each.trial.number)
                break
        if rows:
            self._watcher.result(each.trial, each.last)

    def _ended(self, executor: Executor, each: _Running, end: End) -> bool:
        """Note how a trial ended; return False if another process resumes it."""
        reason = end.reason
        if not reason and not self._is_spent(each):
            reason = "ended without an error, but its budget is not spent"
        status: Status = "stopped" if each.pruned else "failed" if reason else "finished"
        if status == "finished" and each.generations is not None:
            return True  # of population-based training, a part
        if status == "failed" and end.died and each.deaths < _MOST_DEATHS:
            each.deaths += 1
            return not self._start(executor, each)
        told = self._study.tell(each.trial.number, status, self._sweep.value(each.last), reason)
        self._watcher.ended(told)
        return True

    def _is_spent(self, each: _Running) -> bool:
        return _is_spent(self._sweep.config(each.trial, each.generations), each.last)


def _is_over(sweep: Sweep, trial: Trial) -> bool:
    """Return whether a budget of a finished trial is spent, as far as its run can be read."""
    with suppress(UserError):
        rows = rows_in(sweep.out / trial.folder, -1)
        known = (trial.label, trial.game) in sweep.configs
        return known and _is_spent(sweep.config(trial), rows[-1] if rows else {})
    return False


def _is_spent(config: Config, row: Row) -> bool:
    """Return whether a run may be over after a generation: a target is reached by an elite's test, not by its row."""
    return bool(row) and (config.training.target is not None or share_done(config.training, row) >= 1)


@contextmanager
def _locked(out: Path) -> Iterator[int]:
    """Keep other sweeps from the folder as long as any process has the descriptor open. UserError: one is running."""
    deadline = time.monotonic() + LOCK_SECONDS
    with files.open_folder(out) as folder:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UserError(f"another sweep is running in {out}") from None
                time.sleep(_POLL_SECONDS)
        yield folder
