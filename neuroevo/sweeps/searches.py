"""Optuna's samplers and pruners by name, and the options of population-based training."""

from __future__ import annotations

import importlib.util
import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neuroevo.core.errors import UserError

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler

_PARTS_OF_BUDGET = 16  # the first one is where asha compares trials first


def require_optuna() -> None:
    """Check that what a sweep needs is installed. UserError: it is not."""
    if importlib.util.find_spec("optuna") is None:
        raise UserError("a sweep needs optuna: pip install 'neuroevo[sweep]'")


def make_sampler(search: str, options: Mapping[str, Any], seed: int) -> BaseSampler:
    """Make the sampler of a search.

    Args:
        search: "tpe", "cmaes" or "qmc".
        options: Its arguments.
        seed: Of its random numbers.

    Raises:
        TypeError: It has no such argument.
        ValueError: An argument has a value that it refuses.
    """
    from optuna import samplers

    kind = {"tpe": samplers.TPESampler, "cmaes": samplers.CmaEsSampler, "qmc": samplers.QMCSampler}[search]
    return _make(kind, {**options, "seed": seed})


def make_pruner(pruner: str, options: Mapping[str, Any], generations: int | None) -> BasePruner:
    """Make a pruner.

    Args:
        pruner: Its name.
        options: Its arguments.
        generations: How many a trial plays; None: that is not known.

    Raises:
        TypeError: It has no such argument.
        ValueError: An argument has a value that it refuses.
    """
    from optuna import pruners

    kinds = {
        "none": pruners.NopPruner,
        "asha": pruners.SuccessiveHalvingPruner,
        "hyperband": pruners.HyperbandPruner,
        "median": pruners.MedianPruner,
    }
    known: dict[str, Any] = {}
    if generations is not None and pruner == "asha":
        known = {"min_resource": max(generations // _PARTS_OF_BUDGET, 1)}
    if generations is not None and pruner == "hyperband":
        known = {"max_resource": generations}
    return _make(kinds[pruner], {**known, **options})


def _make(kind: Any, options: Mapping[str, Any]) -> Any:
    names = list(inspect.signature(kind).parameters)
    if unknown := [name for name in options if name not in names]:
        raise TypeError(f"{kind.__name__} has no {unknown[0]}, expected one of {', '.join(names)}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is experimental
        return kind(**options)


@dataclass(frozen=True)
class PbtOptions:
    """What [sweep] search_options are of search = "pbt".

    Attributes:
        interval: Generations after which trials are compared; None: a tenth of those that they play.
        quantile: The share of trials, the worst, that continue from a state of one of as many best.
        resample: How likely a value is then drawn anew rather than changed a little.

    Raises:
        ValueError: A value is out of range.
    """

    interval: int | None = None
    quantile: float = 0.25
    resample: float = 0.25

    def __post_init__(self) -> None:
        if self.interval is not None and (type(self.interval) is not int or self.interval < 1):
            raise ValueError(f"interval is {self.interval}, expected a number of generations, at least 1")
        if not 0 < self.quantile <= 0.5:
            raise ValueError(f"quantile is {self.quantile}, expected one in (0, 0.5]")
        if not 0 <= self.resample <= 1:
            raise ValueError(f"resample is {self.resample}, expected one in [0, 1]")

    def ends(self, generations: int) -> list[int]:
        """Return after how many generations each interval ends."""
        interval = self.interval or max(generations // 10, 1)
        return [*range(interval, generations, interval), generations]
