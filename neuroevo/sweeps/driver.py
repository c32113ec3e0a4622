"""Run a sweep: a number of trials in parallel, wherever its executor trains them. The same call resumes it."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError, cannot_write
from neuroevo.core.problems import refuse
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import last_generation
from neuroevo.runs.paths import CSV, check_free, is_run
from neuroevo.sessions import preflight
from neuroevo.sessions.folder import RunFolder
from neuroevo.sweeps.executors import CHILD, End, Executor, Processes, RayTasks
from neuroevo.sweeps.implementations import rows_in
from neuroevo.sweeps.pbt import Exchange, exchanges
from neuroevo.sweeps.points import shared_networks
from neuroevo.sweeps.searches import PbtOptions, require_optuna
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import Sweep, Trial
from neuroevo.sweeps.watcher import SweepWatcher
from neuroevo.system import files
from neuroevo.training.time_left import share_done

_POLL_SECONDS = 0.2
_MOST_DEATHS = 3  # of a trial's process; each time the trial resumes from its newest state
LOCK_SECONDS = 15.0  # for the processes of a sweep that was killed to end

Row = dict[str, Any]


@dataclass
class _Running:
    """A trial that is trained.

    Attributes:
        trial: The trial.
        generations: After how many generations this part of it ends; None: at the budgets of its configuration.
        rows: How many of its run's rows have been seen.
        last: The last of them.
        pruned: Whether the pruner has ended it.
        deaths: How often its process has died.
        seen: metrics.csv as it was when the rows were read: time and size.
        unreadable: Whether the watcher was told that they cannot be read.
    """

    trial: Trial
    generations: int | None
    rows: int = 0
    last: Row | None = None
    pruned: bool = False
    deaths: int = 0
    seen: tuple[int, int] | None = None
    unreadable: bool = False


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
    require_optuna()
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
                self._train_population(executor) if sweep.settings.search == "pbt" else self._play(
                    executor, self._next()
                )
            finally:
                executor.close()
        return self._study.trials(sweep)

    def _check(self, known: Sequence[Trial]) -> None:
        """Try what trials begin with once, before any is started. ConfigError: some cannot begin; all problems."""
        sweep, found, tried = self._sweep, [], []
        folders = {(sweep.out / trial.folder).resolve() for trial in sweep.points}
        begun = {trial.number for trial in known if is_run(sweep.out / trial.folder)}
        configs = [sweep.config(trial) for trial in sweep.points if trial.number not in begun] or (
            [] if sweep.points else [sweep.base]
        )
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
            return Processes(self._lock, self._program)
        networks = None
        if chosen.shared:
            known = [self._sweep.config(trial) for trial in self._sweep.points] or [*self._sweep.configs.values()]
            networks = shared_networks(known)
        address = "local" if chosen.cluster == "none" else chosen.cluster
        return RayTasks(address, hashlib.sha256(bytes(self._sweep.out)).hexdigest(), networks)

    def _next(self) -> Iterator[_Running]:
        """Yield the trials of an interrupted process, and then those that wait or are chosen."""
        for trial in self._study.trials(self._sweep):
            if trial.status == "running":
                yield _Running(trial, None)
        while True:
            trials = self._study.trials(self._sweep)
            if len(trials) >= self._sweep.trials and all(trial.status != "waiting" for trial in trials):
                return
            yield _Running(self._study.ask(self._sweep), None)

    def _play(self, executor: Executor, source: Iterator[_Running]) -> None:
        running: dict[int, _Running] = {}
        more = True
        while more or running:
            while more and len(running) < self._sweep.settings.parallel:
                each = next(source, None)
                more = each is not None
                if each is not None and self._start(executor, each):
                    running[each.trial.number] = each
            time.sleep(_POLL_SECONDS)
            over = executor.ended()  # before their rows are read: then these are all
            for each in list(running.values()):
                number = each.trial.number
                self._news(executor, each, number in over)
                if number in over and self._ended(executor, each, over[number]):
                    del running[number]
            self._watcher.tick()

    def _start(self, executor: Executor, each: _Running) -> bool:
        """Start a trial's process; return False if it cannot be, which is then noted."""
        number, folder = each.trial.number, self._sweep.out / each.trial.folder
        resumes = is_run(folder)
        try:
            config, other = self._sweep.config(each.trial, each.generations), self._sweep.implementations
            executor.start(number, config, folder, self._sweep.trust, other.get(each.trial.label))
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            reason = f"could not be started: {error.strerror or error}{where}"
            self._watcher.ended(self._study.tell(number, "failed", reason=reason))
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
            if self._study.report(each.trial.number, each.rows, self._metric(row)) and not self._is_last(each, row):
                each.pruned = True
                if not over:
                    executor.stop(each.trial.number)
                break
        if rows and each.last is not None:
            self._watcher.result(each.trial, each.last)

    def _ended(self, executor: Executor, each: _Running, end: End) -> bool:
        """Note how a trial ended; return False if another process resumes it."""
        reason = end.reason
        if not reason and not each.pruned and not self._is_last(each, each.last):
            reason = "ended without an error, but its budget is not spent"
        if each.generations is not None and not reason:
            return True  # of population-based training, a part
        number = each.trial.number
        if each.pruned:
            told = self._study.tell(number, "stopped")
        elif not reason:
            told = self._study.tell(number, "finished", self._metric(each.last or {}))
        elif end.died and each.deaths < _MOST_DEATHS:
            each.deaths += 1
            return not self._start(executor, each)
        else:
            told = self._study.tell(number, "failed", reason=reason)
        self._watcher.ended(told)
        return True

    def _metric(self, row: Row) -> float | None:
        value: float | None = row.get(self._sweep.metric)
        return row.get("fitness_mean") if value is None else value

    def _is_last(self, each: _Running, row: Row | None) -> bool:
        return row is not None and _is_spent(self._sweep.config(each.trial, each.generations), row)

    def _train_population(self, executor: Executor) -> None:
        """Train all trials from interval to interval, and exchange in between."""
        sweep, study = self._sweep, self._study
        generations = sweep.base.training.generations
        assert generations is not None, "load_sweep() has checked it"
        while any(trial.status == "waiting" for trial in study.trials()):
            study.ask(sweep)
        for end in PbtOptions(**sweep.settings.search_options).ends(generations):
            last = end == generations
            trials = [trial for trial in study.trials() if trial.status == "running"]
            behind = [trial for trial in trials if last or self._count(trial) < end]
            self._play(executor, iter([_Running(trial, None if last else end) for trial in behind]))
            if last or len(trials) < 2:
                continue
            trials = [trial for trial in study.trials() if trial.status == "running"]
            if study.get(f"exchanges after {end}") is None:  # else an interrupted process has decided
                metrics = {trial.number: self._at(trial, end) for trial in trials}
                decided = exchanges(sweep, trials, metrics, end)
                folders = {trial.number: trial.folder for trial in trials}
                study.set(
                    f"exchanges after {end}",
                    [[each.number, each.donor, folders[each.donor], each.values] for each in decided],
                )
            for number, donor, folder, values in study.get(f"exchanges after {end}"):
                self._fork(Exchange(number, donor, values), folder, end)

    def _count(self, trial: Trial) -> int:
        """Return how many generations a trial has finished."""
        if not is_run(self._sweep.out / trial.folder):
            return 0
        with Database(self._sweep.out / trial.folder / DATABASE) as database:
            return last_generation(database) + 1

    def _at(self, trial: Trial, end: int) -> float:
        (row, *_) = rows_in(self._sweep.out / trial.folder, end - 1)
        value = self._metric(row)
        return -float("inf") if value is None else value

    def _fork(self, exchange: Exchange, donor: str, end: int) -> None:
        """Continue a trial as a fork of another trial's run, unless an interrupted process has done so."""
        sweep = self._sweep
        trial = next(trial for trial in self._study.trials() if trial.number == exchange.number)
        folder = f"{trial.name}-fork-{end:06d}"
        path, new = sweep.out / folder, replace(trial, values=exchange.values, folder=folder)
        if trial.folder == folder or trial.folder > folder:
            return
        if not is_run(path):
            shutil.rmtree(path, ignore_errors=True)
            config = sweep.config(new)
            with RunFolder.fork(path, sweep.out / donor, config=config, generation=end, trust=sweep.trust).open(
                ["sweep"]
            ):
                pass
        self._study.note(trial.number, values=exchange.values, folder=folder)


def _is_over(sweep: Sweep, trial: Trial) -> bool:
    """Return whether a budget of a finished trial is spent, as far as its run can be read."""
    if (trial.label, trial.game) not in sweep.configs:
        return False
    with suppress(UserError):
        rows = rows_in(sweep.out / trial.folder, -1)
        return bool(rows) and _is_spent(sweep.config(trial), rows[-1])
    return False


def _is_spent(config: Config, row: Row) -> bool:
    """Return whether a run may be over after a generation: a target is reached by an elite's test, not by its row."""
    return config.training.target is not None or share_done(config.training, row) >= 1


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
