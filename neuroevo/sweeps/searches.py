"""Construction of Optuna's samplers and pruners by name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from neuroevo.core.extras import require
from neuroevo.sweeps.settings import PRUNERS, SAMPLERS, PbtOptions
from neuroevo.sweeps.space import Space, Values

if TYPE_CHECKING:
    from optuna import Study
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial

_PARTS_OF_BUDGET = 16  # asha first compares trials after this fraction of the generations


def make_sampler(search: str, options: Mapping[str, Any], seed: int) -> BaseSampler:
    """Make the sampler of a search.

    Args:
        search: Name of a search other than "grid".
        options: Arguments of the sampler, or of "pbt", whose trials start with random values.
        seed: Seed of the sampler, in [0, 2**32).

    Raises:
        TypeError: An argument does not exist.
        ValueError: An argument has an invalid value.
    """
    from optuna import samplers

    if search == "pbt":
        PbtOptions(**options)
        search, options = "random", {}
    return _make(getattr(samplers, f"{SAMPLERS[search]}Sampler"), options, seed=seed)


def make_pruner(pruner: str, options: Mapping[str, Any], generations: int | None) -> BasePruner:
    """Make a pruner for trials with this number of generations; None: the number is unknown.

    Raises:
        TypeError: An argument does not exist.
        ValueError: An argument has an invalid value.
    """
    from optuna import pruners

    known: dict[str, Any] = {}
    if generations is not None and pruner == "asha":
        known = {"min_resource": max(generations // _PARTS_OF_BUDGET, 1)}
    if generations is not None and pruner == "hyperband":
        known = {"max_resource": generations}
    return _make(getattr(pruners, f"{PRUNERS[pruner]}Pruner"), {**known, **options})


def _make(kind: Any, options: Mapping[str, Any], **own: Any) -> Any:
    names = [name for name in inspect.signature(kind).parameters if name not in own]
    if unknown := [name for name in options if name not in names]:
        expected = f"one of {', '.join(names)}" if names else "no options"
        raise TypeError(f"{kind.__name__} has no {unknown[0]}, expected {expected}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are experimental
        return kind(**options, **own)


def choose(study: Study, space: Space) -> tuple[Trial, Values]:
    """Sample values with a study's sampler; return Optuna's trial, which is running, and the values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trial = study.ask({key: domain.distribution for key, domain in space.items()})
    return trial, {key: domain.value(trial.params[key]) for key, domain in space.items()}


def draw(space: Space, seed: int) -> Values:
    """Draw random values, which depend only on the space and the seed."""
    require("sweep", "optuna")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return choose(optuna.create_study(sampler=make_sampler("random", {}, seed)), space)[1]
