"""Population-based training: at every interval the worst trials continue as forks of the best, with other values.

Trials wait for each other at the end of an interval, so that which trial continues from which depends on the seed
alone. Jaderberg et al. 2017, arXiv:1711.09846.
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

_ATTEMPTS = 20  # at values that a configuration accepts


class Exchange(NamedTuple):
    """Trial that continues as a fork.

    Attributes:
        number: The trial's.
        donor: The number of the trial whose run it continues.
        folder: That run's.
        values: Its new values.
    """

    number: int
    donor: int
    folder: str
    values: Values


def train_population(sweep: Sweep, study: Study, play: Callable[[Sequence[Trial], int | None], None]) -> None:
    """Train the trials that are running from interval to interval, and exchange in between.

    Args:
        sweep: The sweep.
        study: Its trials.
        play: Trains trials until they have so many generations; None: to their budget.
    """
    generations = sweep.base.training.generations
    assert generations is not None, "load_sweep() has checked it"

    def running() -> list[Trial]:
        return [trial for trial in study.trials() if trial.status == "running"]

    interval = PbtOptions(**sweep.settings.search_options).interval or max(generations // 10, 1)
    for end in range(interval, generations, interval):
        play([trial for trial in running() if _row(sweep, trial, end) is None], end)
        trials, name = running(), f"exchanges after {end}"
        if name not in study.study.user_attrs:  # else an interrupted process has decided
            metrics = {trial.number: sweep.value(_row(sweep, trial, end) or {}) for trial in trials}
            study.study.set_user_attr(name, exchanges(sweep, trials, metrics, end))
        for exchange in study.study.user_attrs[name]:
            _fork(sweep, study, Exchange(*exchange), end)
    play(running(), None)


def _row(sweep: Sweep, trial: Trial, end: int) -> Row | None:
    """Return the numbers of the last of so many generations of a trial; None: it has not finished them."""
    folder = sweep.out / trial.folder
    return next(iter(rows_in(folder, end - 1)), None) if is_run(folder) else None


def exchanges(sweep: Sweep, trials: Sequence[Trial], metrics: Mapping[int, float], end: int) -> list[Exchange]:
    """Decide which trials continue from which.

    Args:
        sweep: The sweep.
        trials: Those that play.
        metrics: The metric of each at the end of the interval, by number.
        end: After how many generations that is.

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
    """Return values that are each drawn again, with this probability, or changed a little."""
    fresh = draw(space, int(rng.integers(2**32)))
    return {
        key: fresh[key] if rng.random() < resample else domain.near(values[key], rng) for key, domain in space.items()
    }


def _fork(sweep: Sweep, study: Study, exchange: Exchange, end: int) -> None:
    """Continue a trial as a fork of another trial's run, unless an interrupted process has done so."""
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
