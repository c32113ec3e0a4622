"""Runs a sweep by Ray Tune: trials in processes of their own, a given number at a time; the same call goes on.

Tune's state, which the searcher's and the scheduler's are part of, is in the folder "tune" of the sweep's, and is
written every second. A trial that began after that still is not lost: its run's folder is found by its number.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import logging
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neuroevo.core.errors import NotTrustedError, UserError, cannot_write
from neuroevo.core.problems import ConfigError, Problem, shown
from neuroevo.runs.paths import check_free
from neuroevo.sweeps.section import values_of
from neuroevo.sweeps.tune.ledger import Ledger, Trial, trial_name
from neuroevo.sweeps.tune.points import shared_networks
from neuroevo.sweeps.tune.sweep import Sweep
from neuroevo.sweeps.tune.watcher import SweepWatcher
from neuroevo.system.files import open_folder, write_atomically
from neuroevo.system.own_runs import is_own, remember
from neuroevo.system.reading import parse_json, read_regular

_NOT_OWN = (
    "to resume the sweep in {}, Ray Tune's state in it is unpickled, which can run any code, and the sweep was not "
    "begun on this machine. If you trust whoever made it, say so with --trust; see docs/security.md"
)
SWEEP, STATE = "sweep.json", "tune"  # in a sweep's folder: what it is, and Tune's own folder
_FREE = ("concurrent", "address", "out", "shared")  # settings that may change when a sweep goes on
_MOST_DEATHS = 3  # of a trial's process; each time the trial goes on from its newest state
_LOCK_SECONDS = 15.0  # for the processes of a sweep that was killed to end
_ENVIRONMENT = {
    "RAY_AIR_NEW_OUTPUT": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # the run folders have it all
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # an interrupt ends the command
    "TUNE_GLOBAL_CHECKPOINT_S": "1",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


def require_tune(search: str) -> None:
    """Checks that what a sweep needs is installed.

    Args:
        search: The sweep's.

    Raises:
        UserError: It is not.
    """
    needed = ["ray", "pandas", "pyarrow", *(["optuna"] if search == "optuna" else [])]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"a sweep needs {' and '.join(missing)}: pip install 'neuroevo[sweep]'")


def run_sweep(sweep: Sweep, watcher: SweepWatcher | None = None) -> list[Trial]:
    """Runs the trials of a sweep that are not over. KeyboardInterrupt passes through after all processes have ended.

    Args:
        sweep: The sweep.
        watcher: Hears how it goes.

    Returns:
        All trials as they ended. A failed one does not stop the others.

    Raises:
        NotTrustedError: The sweep in the folder was not begun here by this user.
        UserError: What a sweep needs is not installed, its folder cannot be used or holds another sweep, or there is no
            such cluster.
    """
    require_tune(sweep.settings.search)
    try:
        sweep.out.mkdir(parents=True, exist_ok=True)
        with _locked(sweep.out):
            check_free(sweep.out)
            check_same(sweep)
            ledger = Ledger.read(sweep.out)
            for number, values in enumerate(sweep.points or []):
                ledger.trials.setdefault(number, Trial(number, values))
            ledger.write()
            watcher = watcher or SweepWatcher()
            watcher.begin(list(ledger.trials.values()), sweep.trials, sweep.settings.concurrent)
            if _over(ledger) < sweep.trials:
                if _has_state(sweep.out / STATE) and not sweep.trust and not is_own(sweep.out):
                    raise NotTrustedError(_NOT_OWN.format(sweep.out))
                remember(sweep.out)
                _run(sweep, ledger, watcher)
            if _over(ledger) == sweep.trials:  # snapshots of trials: forks have copies, and nothing is forked any more
                for snapshot in (sweep.out / STATE).glob("*/checkpoint_*"):
                    shutil.rmtree(snapshot, ignore_errors=True)
            return [ledger.trials[number] for number in sorted(ledger.trials)]
    except OSError as error:
        raise cannot_write(f"to the sweep's folder {sweep.out}", error) from error


def _over(ledger: Ledger) -> int:
    return sum(trial.status in ("finished", "stopped") for trial in ledger.trials.values())


def check_same(sweep: Sweep) -> None:
    """Notes what a new sweep is, or checks that one that goes on is the same.

    Args:
        sweep: The sweep, whose folder is there.

    Raises:
        ConfigError: The folder's sweep is another one; it names what differs.
        OSError: It cannot be written.
    """
    path = sweep.out / SWEEP
    now = json.loads(json.dumps(_identity(sweep)))
    try:
        before = parse_json(read_regular(path))
    except FileNotFoundError:
        write_atomically(path, (json.dumps(now, indent=1) + "\n").encode())
        return
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    problems = []
    for key in dict.fromkeys([*before, *now]):
        if before.get(key) != now.get(key):
            reason = (
                f"the sweep in {sweep.out} was begun with {shown(before.get(key))}; expected that, or another --out"
            )
            problems.append(Problem(f"sweep.{key}", reason, now.get(key)))
    if problems:
        raise ConfigError(problems)


def _identity(sweep: Sweep) -> dict[str, Any]:
    """What trials depend on."""
    tables = {name: table for name, table in sweep.tables.items() if name not in ("hardware", "checkpoints")}
    free = {*_FREE, "set"}  # set is in the tables
    settings = {key: value for key, value in values_of(sweep.settings).items() if key not in free}
    options = {"asha": asdict(sweep.settings.asha), "pbt": asdict(sweep.settings.pbt)}
    return {**settings, **options, "config": tables}


def _run(sweep: Sweep, ledger: Ledger, watcher: SweepWatcher) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from neuroevo.cluster.connection import join, leave
    from neuroevo.cluster.sharing import end_players

    with _environment(_ENVIRONMENT):
        leaves = join(sweep.settings.address)
        try:
            _tune(sweep, ledger, watcher)
        finally:
            end_players()
            if leaves:
                leave()


def _tune(sweep: Sweep, ledger: Ledger, watcher: SweepWatcher) -> None:
    """Runs Tune: by tune.run(), since Tuner goes on with pickled copies of searcher, scheduler and callbacks."""
    from ray import tune

    from neuroevo.sweeps.tune.progress import LedgerCallback
    from neuroevo.sweeps.tune.schedulers import SchedulerState, make_scheduler
    from neuroevo.sweeps.tune.search import NumberedSearch
    from neuroevo.sweeps.tune.trainable import NUMBER, SHARED, TRIAL, Trainable

    chosen = sweep.settings
    config: dict[str, Any] = {"config": dict(sweep.tables), "out": str(sweep.out), "command": sys.argv}
    if chosen.shared:
        config[SHARED] = [asdict(network) for network in shared_networks(sweep.space, sweep.tables, sweep.points)]
    options: dict[str, Any] = {}
    if sweep.points is None:
        options = {"search_alg": NumberedSearch(sweep, ledger), "num_samples": sweep.trials}
    else:
        trials = [{NUMBER: number, **values} for number, values in enumerate(sweep.points)]
        config[TRIAL] = tune.grid_search(trials)
    if chosen.scheduler != "pbt":  # which has all trials take part, and pauses some
        options["max_concurrent_trials"] = chosen.concurrent
    scheduler = make_scheduler(sweep)
    goes_on = _has_state(sweep.out / STATE)
    if not goes_on:
        shutil.rmtree(sweep.out / STATE, ignore_errors=True)  # what a sweep left that was killed before its first state
    logging.getLogger("ray.tune").setLevel(logging.CRITICAL)  # the watcher hears of what fails
    usr1 = signal.getsignal(signal.SIGUSR1)
    try:
        tune.run(
            Trainable,
            name=STATE,
            storage_path=str(sweep.out),
            config=config,
            scheduler=scheduler,
            resources_per_trial={"cpu": cores_per_trial(chosen.concurrent)},
            callbacks=[LedgerCallback(sweep, ledger, watcher), SchedulerState(scheduler)],
            max_failures=_MOST_DEATHS,
            resume="AUTO+ERRORED" if goes_on else None,
            reuse_actors=True,
            raise_on_failed_trial=False,
            trial_dirname_creator=lambda trial: trial_name(trial.config[TRIAL][NUMBER]),
            verbose=0,
            **options,
        )
    finally:
        signal.signal(signal.SIGUSR1, usr1)


def cores_per_trial(concurrent: int) -> float:
    """Divides the cores of the cluster's machines among trials.

    Args:
        concurrent: Trials at a time.

    Returns:
        How many cores a trial has Ray reserve, so that this many trials fit and no more.
    """
    from neuroevo.cluster.connection import nodes

    cores = [node["Resources"].get("CPU", 0.0) for node in nodes() if node["Alive"]]
    cores = [count for count in cores if count]
    each = math.ceil(concurrent / max(len(cores), 1))
    return math.floor(min(cores, default=1.0) / each * 1000) / 1000


def _has_state(folder: Path) -> bool:
    return any(folder.glob("experiment_state-*.json"))


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets variables of this process's environment, which its children have too, and puts back what was there."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Keep other sweeps from the folder during the block. UserError: one is running in it."""
    deadline = time.monotonic() + _LOCK_SECONDS
    with open_folder(out) as folder:
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UserError(f"another sweep is running in {out}") from None
                time.sleep(0.2)
        yield
