"""Population-based training: at every interval the worst trials continue as forks of the best, with other values.

Trials wait for each other at the end of an interval, so that which trial continues from which depends on the seed
alone. Jaderberg et al. 2017, arXiv:1711.09846.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroevo.sweeps.points import Values, draw, refused
from neuroevo.sweeps.searches import PbtOptions
from neuroevo.sweeps.sweep import Sweep, Trial

_ATTEMPTS = 20  # at values that a configuration accepts


@dataclass(frozen=True)
class Exchange:
    """Trial that continues as a fork.

    Attributes:
        number: The trial's.
        donor: The number of the trial whose run it continues.
        values: Its new values.
    """

    number: int
    donor: int
    values: Values


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
    options = PbtOptions(**sweep.settings.search_options)
    order = sorted(trials, key=lambda trial: (metrics[trial.number], -trial.number))
    count = min(int(np.ceil(options.quantile * len(order))), len(order) // 2)
    best = order[len(order) - count :]
    found = []
    for loser in order[:count]:
        rng = np.random.default_rng([sweep.settings.seed, loser.number, end])
        donor = best[int(rng.integers(len(best)))]
        found.append(
            Exchange(loser.number, donor.number, _explored(sweep, donor, rng, options.resample, loser.number, end))
        )
    return found


def _explored(sweep: Sweep, donor: Trial, rng: np.random.Generator, resample: float, number: int, end: int) -> Values:
    """Return the donor's values, each drawn anew or changed a little, as the configuration accepts them."""
    ((tables),) = sweep.tables.values()
    for attempt in range(_ATTEMPTS):
        fresh = draw(sweep.space, sweep.settings.seed, number, end * _ATTEMPTS + attempt)
        values = {
            key: fresh[key] if rng.random() < resample else of.near(donor.values[key], rng)
            for key, of in sweep.space.items()
        }
        if not refused(tables, values):
            return values
    return dict(donor.values)
