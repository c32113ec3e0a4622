"""Learning curves for the page: fitness and returns of one run, or one column of several runs with bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuroevo.analysis.curves import X_AXES, Band, Curve, band, curve
from neuroevo.analysis.run_plots import grouped
from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.payload import array
from neuroevo.training.record import COLUMNS

_OWN = ("fitness_max", "fitness_mean", "fitness_min", "validation_mean", "test_mean", "test_standard_error")
_MOST_POINTS = 4000  # per line, more than a screen has pixels
ALONE = "alone"
"""Pseudo-column for the curves of a single run."""


def columns(runs: Sequence[InspectedRun]) -> list[str]:
    """Return the columns that can be plotted, ending with those specific to algorithms."""
    own = [name for name in COLUMNS if name not in ("generation", "fitness")]
    more = [name for run in runs for row in run.metrics.rows[-1:] for name in row if name not in COLUMNS]
    return list(dict.fromkeys([*own, *more]))


def column_of(runs: Sequence[InspectedRun]) -> str:
    """Return the default column for comparing runs: the elites' test returns, if all runs have them."""
    last = [run.metrics.rows[-1] for run in runs if run.metrics.rows]
    known = (name for name in ("test_mean", "validation_mean") if all(row[name] is not None for row in last))
    return next(known, "fitness_mean")


def progress(run: InspectedRun) -> dict[str, Any]:
    """Return the fitness of a run's populations and the returns of its elites against each axis."""
    found: dict[str, Any] = {"axes": {name: title for name, (title, _) in X_AXES.items()}}
    for x in X_AXES:
        found[x] = {name: _line(curve(run.metrics.rows, name, x)) for name in _OWN}
    return found


def compare(runs: Sequence[InspectedRun], column: str) -> dict[str, Any]:
    """Return one column of runs, with a band for each group of runs that differ only in their seed.

    Args:
        runs: The runs.
        column: A column of metrics.csv.

    Returns:
        `groups`, each with its label, the numbers of its runs, and for each axis its band and the lines of its runs.

    Raises:
        UserError: The column does not exist.
    """
    known = columns(runs)
    if column not in known:
        raise UserError(f"there is no column {column}{did_you_mean(column, known)}, expected one of {', '.join(known)}")
    found = []
    for label, numbers in groups(runs).items():
        group: dict[str, Any] = {"label": label, "runs": numbers}
        for x in X_AXES:
            curves = {number: curve(runs[number].metrics.rows, column, x) for number in numbers}
            lines = {number: each for number, each in curves.items() if len(each.x)}
            group[x] = {"lines": {number: _line(each) for number, each in lines.items()}}
            if len(lines) > 1:
                group[x]["band"] = _band(band(list(lines.values())))
        found.append(group)
    return {"column": column, "axes": {name: title for name, (title, _) in X_AXES.items()}, "groups": found}


def groups(runs: Sequence[InspectedRun]) -> dict[str, list[int]]:
    """Group runs that differ only in their seed; labels describe how the groups differ.

    A run whose configuration is invalid or not trusted forms its own group.
    """
    readers = {run.reader: number for number, run in enumerate(runs) if run.reader is not None}
    together = grouped(list(readers))
    environments = {environment for environment, _ in together}
    found: dict[str, list[int]] = {}
    for (environment, label), members in together.items():
        name = f"{label} on {environment}" if len(environments) > 1 else label
        found[name] = [readers[member] for member in members]
    for number, run in enumerate(runs):
        if run.reader is None:
            found[run.name] = [number]
    return found


def _line(of: Curve) -> dict[str, Any]:
    every = max(len(of.x) // _MOST_POINTS, 1)
    return {"x": array(_thinned(of.x, every)), "y": array(_thinned(of.scores, every))}


def _band(of: Band) -> Mapping[str, Any]:
    every = max(len(of.x) // _MOST_POINTS, 1)
    parts = {name: array(_thinned(getattr(of, name), every)) for name in ("x", "mean", "low", "high")}
    return {**parts, "together": -(-of.together // every)}


def _thinned(values: np.ndarray, every: int) -> np.ndarray:
    return np.asarray(values[::every], np.float64)
