"""Execution of a sweep: an executor trains several trials in parallel. The same call resumes an interrupted sweep."""

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
_MOST_DEATHS = 3  # of a trial's process; after each the trial resumes from its newest state
LOCK_SECONDS = 15.0  # time for the processes of a killed sweep to terminate


class SweepWatcher:
    """Base class of receivers of the events of `run_sweep`; it ignores them."""

    def begin(self, trials: Sequence[Trial], total: int, parallel: int) -> None:
        """Receive the known trials, the total number of trials, and the number trained in parallel."""

    def started(self, trial: Trial, resumes: bool) -> None:
        """Receive a trial whose training starts, or resumes if its run exists already."""

    def result(self, trial: Trial, row: Mapping[str, Any]) -> None:
        """Receive the row of metrics.csv of a trial's last generation, after one or more new generations."""

    def unreadable(self, trial: Trial, reason: str) -> None:
        """Receive, once per trial, why its run cannot be read; its generations are then not reported."""

    def ended(self, trial: Trial) -> None:
        """Receive a trial that is finished, was stopped by the pruner, or has failed."""

    def tick(self) -> None:
        """Do periodic work; called several times per second."""


@dataclass
class _Running:
    """Trial in training."""

    trial: Trial
    generations: int | None  # generation after which this part of the training ends; None: at the trial's budgets
    rows: int = 0  # number of rows of its run that were read
    last: Row = field(default_factory=dict)  # the last of these rows
    pruned: bool = False
    deaths: int = 0  # number of its processes that died
    seen: tuple[int, int] | None = None  # time and size of metrics.csv when the rows were read
    unreadable: bool = False  # whether unreadable() was called for this trial


def run_sweep(sweep: Sweep, watcher: SweepWatcher | None = None, program: Sequence[str] = CHILD) -> list[Trial]:
    """Run the unfinished trials of a sweep. KeyboardInterrupt is raised after all trials have stopped.

    Args:
        sweep: The sweep.
        watcher: Receiver of events.
        program: The command that trains a trial in a process.

    Returns:
        All trials with their final status. A failed trial does not stop the sweep.

    Raises:
        ConfigError: The folder contains another sweep, or trials cannot start; lists all problems.
        NotTrustedError: The sweep in the folder was not begun on this machine by this user.
        UserError: A dependency is not installed, the folder is unusable, or the cluster cannot be joined.
    """
    require("sweep", "optuna")
    check_free(sweep.out)
    try:
        sweep.out.mkdir(parents=True, exist_ok=True)
        with _locked(sweep.out) as lock:
            study = Study(sweep.out, sweep.trust, new=True)
            study.begin(sweep, lambda trial: _is_over(sweep, trial))
            for place in {sweep.out, *((sweep.out / trial.folder).parent for trial in study.trials())}:
                if place.is_dir():  # remove temporary files of a killed process
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
                    for _ in self._next():  # draw the values of all trials before training
                        pass
                    train_population(sweep, self._study, lambda trials, end: self._play(executor, trials, end))
                else:
                    self._play(executor, self._next())
            finally:
                executor.close()
        return self._study.trials(sweep)

    def _check(self, known: Sequence[Trial]) -> None:
        """Check that trials can start, once per kind of start. Raise ConfigError with all problems if some cannot."""
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
        if chosen.cluster == "none":
            return Processes(self._sweep, self._lock, self._program)
        require("cluster", "ray")
        from neuroevo.sweeps.ray_tasks import RayTasks

        return RayTasks(self._sweep, chosen.cluster)

    def _next(self) -> Iterator[Trial]:
        """Yield the trials that an interrupted process was training, then waiting and new ones."""
        yield from (trial for trial in self._study.trials(self._sweep) if trial.status == "running")
        while True:
            trials = self._study.trials(self._sweep)
            if len(trials) >= self._sweep.trials and all(trial.status != "waiting" for trial in trials):
                return
            yield self._study.ask(self._sweep)

    def _play(self, executor: Executor, trials: Iterable[Trial], generations: int | None = None) -> None:
        """Train trials up to a number of generations; None: to the budgets of their configurations."""
        source, running, more = iter(trials), dict[int, _Running](), True
        while more or running:
            while more and len(running) < self._sweep.settings.parallel:
                trial = next(source, None)
                more = trial is not None
                if trial is not None and self._start(executor, each := _Running(trial, generations)):
                    running[trial.number] = each
            time.sleep(_POLL_SECONDS)
            over = executor.ended()  # before rows are read, so that an ended trial's rows are complete
            for number, each in list(running.items()):
                self._news(executor, each, number in over)
                if number in over and self._ended(executor, each, over[number]):
                    del running[number]
            self._watcher.tick()

    def _start(self, executor: Executor, each: _Running) -> bool:
        """Start a trial's process; if that fails, record the failure and return False."""
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
        """Report new rows, and stop the trial if the pruner prunes it."""
        folder = self._sweep.out / each.trial.folder
        try:
            status = (folder / CSV).stat()
        except OSError:  # it does not exist yet
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
        """Record how a trial's process ended; return False if another process resumes the trial."""
        reason = end.reason
        if not reason and not self._is_spent(each):
            reason = "ended without an error, but its budget is not spent"
        status: Status = "stopped" if each.pruned else "failed" if reason else "finished"
        if status == "finished" and each.generations is not None:
            return True  # an interval of population-based training
        if status == "failed" and end.died and each.deaths < _MOST_DEATHS:
            each.deaths += 1
            return not self._start(executor, each)
        told = self._study.tell(each.trial.number, status, self._sweep.value(each.last), reason)
        self._watcher.ended(told)
        return True

    def _is_spent(self, each: _Running) -> bool:
        return _is_spent(self._sweep.config(each.trial, each.generations), each.last)


def _is_over(sweep: Sweep, trial: Trial) -> bool:
    """Return whether a budget of a finished trial is spent; False if its run cannot be read."""
    with suppress(UserError):
        rows = rows_in(sweep.out / trial.folder, -1)
        known = (trial.label, trial.game) in sweep.configs
        return known and _is_spent(sweep.config(trial), rows[-1] if rows else {})
    return False


def _is_spent(config: Config, row: Row) -> bool:
    """Return whether a run may end after a generation; always True with a target, which rows do not show."""
    return bool(row) and (config.training.target is not None or share_done(config.training, row) >= 1)


@contextmanager
def _locked(out: Path) -> Iterator[int]:
    """Lock a sweep's folder while any process keeps the descriptor open. Raise UserError if it is locked."""
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
