"""Population-based training (PBT): after each interval the worst trials continue as forks of the best.

Exploration changes the values of a fork. Trials wait for each other at the end of an interval, so that the exchanges
depend only on the seed. Jaderberg et al. 2017, arXiv:1711.09846.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from neuroevo.runs.paths import is_run
from neuroevo.sessions.folder import RunFolder
from neuroevo.sweeps.checks import attempt
from neuroevo.sweeps.implementations import Row, rows_in
from neuroevo.sweeps.searches import draw
from neuroevo.sweeps.settings import PbtOptions
from neuroevo.sweeps.space import Space, Values
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import Sweep, Trial

_ATTEMPTS = 20  # attempts to draw valid values


class Exchange(NamedTuple):
    """Trial that continues as a fork.

    Attributes:
        number: The trial's number.
        donor: Number of the trial whose run it continues.
        folder: Folder of the donor's run.
        values: New values of the trial.
    """

    number: int
    donor: int
    folder: str
    values: Values


def train_population(sweep: Sweep, study: Study, play: Callable[[Sequence[Trial], int | None], None]) -> None:
    """Train the running trials interval by interval, with exchanges in between.

    Args:
        sweep: The sweep.
        study: The study with its trials.
        play: Function that trains trials up to a number of generations; None: to their budget.
    """
    generations = sweep.base.training.generations
    assert generations is not None, "load_sweep() has checked it"

    def running() -> list[Trial]:
        return [trial for trial in study.trials() if trial.status == "running"]

    interval = PbtOptions(**sweep.settings.search_options).interval or max(generations // 10, 1)
    for end in range(interval, generations, interval):
        play([trial for trial in running() if _row(sweep, trial, end) is None], end)
        trials, name = running(), f"exchanges after {end}"
        if name not in study.study.user_attrs:  # otherwise an interrupted process has chosen the exchanges
            metrics = {trial.number: sweep.value(_row(sweep, trial, end) or {}) for trial in trials}
            study.study.set_user_attr(name, exchanges(sweep, trials, metrics, end))
        for exchange in study.study.user_attrs[name]:
            _fork(sweep, study, Exchange(*exchange), end)
    play(running(), None)


def _row(sweep: Sweep, trial: Trial, end: int) -> Row | None:
    """Return the row of a trial after `end` generations; None if it has not finished them."""
    folder = sweep.out / trial.folder
    return next(iter(rows_in(folder, end - 1)), None) if is_run(folder) else None


def exchanges(sweep: Sweep, trials: Sequence[Trial], metrics: Mapping[int, float], end: int) -> list[Exchange]:
    """Choose the exchanges at the end of an interval.

    Args:
        sweep: The sweep.
        trials: The running trials.
        metrics: Metric of each trial at the end of the interval, by number.
        end: Number of generations at the end of the interval.

    Returns:
        The exchanges, the worst trial's first.
    """
    (tables,) = sweep.tables.values()
    options = PbtOptions(**sweep.settings.search_options)
    order = sorted(trials, key=lambda trial: (metrics[trial.number], -trial.number))
    count = min(math.ceil(options.quantile * len(order)), len(order) // 2)
    found = []
    for loser in order[:count]:
        rng = np.random.default_rng([sweep.settings.seed, loser.number, end])
        donor = order[int(rng.integers(len(order) - count, len(order)))]
        explored = (_explored(sweep.space, donor.values, options.resample, rng) for _ in range(_ATTEMPTS))
        values = next((each for each in explored if attempt(tables, each)[0]), donor.values)
        found.append(Exchange(loser.number, donor.number, donor.folder, values))
    return found


def _explored(space: Space, values: Values, resample: float, rng: np.random.Generator) -> Values:
    """Return explored values: each is resampled with this probability, otherwise perturbed."""
    fresh = draw(space, int(rng.integers(2**32)))
    return {
        key: fresh[key] if rng.random() < resample else domain.near(values[key], rng) for key, domain in space.items()
    }


def _fork(sweep: Sweep, study: Study, exchange: Exchange, end: int) -> None:
    """Continue a trial as a fork of another trial's run, unless an interrupted process did so already."""
    trial = next(trial for trial in study.trials() if trial.number == exchange.number)
    folder = f"{trial.name}-fork-{end:06d}"
    if trial.folder >= folder:
        return
    path, new = sweep.out / folder, replace(trial, values=exchange.values, folder=folder)
    if not is_run(path):
        shutil.rmtree(path, ignore_errors=True)
        donor, config = sweep.out / exchange.folder, sweep.config(new)
        RunFolder.fork(path, donor, config=config, generation=end, trust=sweep.trust).open(["sweep"]).close()
    study.note(trial.number, values=exchange.values, folder=folder)
