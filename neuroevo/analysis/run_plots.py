"""Plots of one run's progress or of several runs, where runs that differ only in their seed form one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroevo.analysis.curves import COLORS, X_AXES, Group, XAxis, curve, draw, finish
from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean, inline
from neuroevo.runs.reader import RunReader

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OWN = (  # of a single run
    ("fitness_max", "best of the population", "#999999"),
    ("fitness_mean", "mean of the population", "#000000"),
    ("validation_mean", "elite, validation", COLORS[0]),
    ("test_mean", "elite, test ± standard error", COLORS[1]),
)


def plot(runs: Sequence[RunReader], x: XAxis = "frames", column: str | None = None) -> Figure:
    """Plot the learning curves of runs.

    Args:
        runs: The runs, at least one. Runs that differ only in their seed are drawn as one line with a band.
        x: The axis: "frames", "steps" (decisions), "time" (wall time) or "generations".
        column: The column of metrics.csv to plot; None for the fitness and returns of a single run, or for the elites'
            test returns of several runs (validation returns if a run has no test episodes).

    Returns:
        A matplotlib figure, which notebooks display; figure.savefig("curves.png") saves it.

    Raises:
        UserError: The axis or column does not exist, or a run has no finished generation.
    """
    if x not in X_AXES:
        raise UserError(f"the axis is {x!r}, expected one of {', '.join(X_AXES)}{did_you_mean(str(x), X_AXES)}")
    rows = {run.path: run.rows(fitness=False) for run in runs}
    for run in runs:
        if not rows[run.path]:
            raise UserError(f"the run in {run.path} has no finished generation to draw")
        known = list(rows[run.path][0])
        if column is not None and column not in known:
            hint = did_you_mean(column, known)
            raise UserError(f"the run in {run.path} has no column {column}{hint} (columns: {', '.join(known)})")
    if len(runs) == 1 and column is None:
        return _plot_one(runs[0], rows[runs[0].path], x)
    tested = all(run.config.training.test_episodes for run in runs)
    shown = column or ("test_mean" if tested else "validation_mean")
    groups = [
        Group(panel, label, [own for run in members if len((own := curve(rows[run.path], shown, x)).x)])
        for (panel, label), members in grouped(runs).items()
    ]
    names = {"test_mean": "elite's test return", "validation_mean": "elite's validation return"}
    return draw(groups, x, names.get(shown, shown.replace("_", " ")))


def grouped(runs: Sequence[RunReader]) -> dict[tuple[str, str], list[RunReader]]:
    """Group runs that differ only in their seed.

    Args:
        runs: The runs.

    Returns:
        The runs of each group by environment and label; a label is the algorithm and the settings that differ.
    """
    flat = {run.path: _flat(run.config.origin()) for run in runs}
    for keys in flat.values():
        keys.pop("training.seed", None)
    first: dict[str, dict[str, Any]] = {}  # the first run per environment, since each environment has its own panel
    for keys in flat.values():
        first.setdefault(keys["env.name"], keys)
    every = list(dict.fromkeys(key for keys in flat.values() for key in keys))
    differing = [
        key
        for key in every
        if not key.startswith("env.")
        and any(keys.get(key) != first[keys["env.name"]].get(key) for keys in flat.values())
    ]
    groups: dict[tuple[str, str], list[RunReader]] = {}
    for run in runs:
        own = flat[run.path]
        told = [
            f"{key.partition('.')[2]}={own[key] if isinstance(own[key], str) else inline(own[key])}"
            for key in differing
            if key != "algorithm.name" and key in own
        ]
        options = [f"{key.removeprefix('env.')}={inline(own[key])}" for key in own if _option_differs(key, flat)]
        groups.setdefault((run.config.env.name, ", ".join([run.config.algorithm_name, *told, *options])), []).append(
            run
        )
    return groups


def _option_differs(key: str, flat: Mapping[Path, Mapping[str, Any]]) -> bool:
    """Return whether an option of an environment differs between its runs."""
    if not key.startswith("env.") or key == "env.name":
        return False
    having = [keys for keys in flat.values() if key in keys]
    names = {keys["env.name"] for keys in having}
    beside = [keys for keys in flat.values() if keys["env.name"] in names]
    return len({inline(keys.get(key)) for keys in beside}) > 1


def _flat(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested tables to one with keys such as algorithm.sigma."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _plot_one(run: RunReader, rows: Sequence[Mapping[str, Any]], x: XAxis) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    panel = figure.subplots()
    scores = []
    for column, label, color in _OWN:
        own = curve(rows, column, x)
        if not len(own.x):
            continue
        scores.append(own.scores)
        panel.plot(own.x, own.scores, color=color, label=label, linewidth=1.2, marker="." if len(own.x) < 3 else None)
        if column == "test_mean":
            errors = curve([row for row in rows if row[column] is not None], "test_standard_error", x)
            if len(errors.x) == len(own.x):
                low, high = own.scores - errors.scores, own.scores + errors.scores
                panel.fill_between(own.x, low, high, color=color, alpha=0.2, linewidth=0)
    panel.set_title(f"{run.config.algorithm_name} on {run.config.env.name}, seed {run.config.training.seed}")
    finish(panel, x, "return", scores)
    return figure
