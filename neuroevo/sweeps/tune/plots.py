"""Two figures of a sweep: the metric of every trial against steps, and parallel coordinates of values and metric.

In both a trial's color says how it ended: from the darkest, the worst, to the brightest, the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.sweeps.tune.space import Choice, Range, Space, value_text
from neuroevo.sweeps.tune.status import TrialStatus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMED = 5  # trials that the legend names
_TICKS = 5  # of the scale of a range


def draw_curves(ranked: Sequence[TrialStatus]) -> Figure:
    """Draws the metric of every trial against its steps.

    Args:
        ranked: The trials, the best first.

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    panel = figure.subplots()
    played = [now for now in ranked if now.value is not None]
    for place, (now, color) in reversed(list(enumerate(zip(played, _colors(played), strict=True)))):
        rows = [row for row in now.rows if row[now.metric] is not None]
        points = [row["steps_total"] for row in rows], [row[now.metric] for row in rows]
        label = f"{now.trial.name}: {now.value:,.6g}" if place < _NAMED else None
        best: dict[str, Any] = {"linewidth": 1.8, "zorder": 3} if place == 0 else {"linewidth": 0.9}
        dot = "o" if len(rows) == 1 else None  # a line through one point is invisible
        panel.plot(*points, drawstyle="steps-post", color=color, marker=dot, label=label, **best)
    panel.set_xlabel("steps")
    panel.set_ylabel(ranked[0].metric if ranked else "")
    panel.set_xlim(left=0)
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    panel.grid(alpha=0.3, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)
    if played:
        handles, labels = panel.get_legend_handles_labels()
        title = "the best trials" if len(played) > _NAMED else "trials"
        panel.legend(handles[::-1], labels[::-1], title=title, frameon=False, fontsize="small", loc="best")
    return figure


def draw_parallel(ranked: Sequence[TrialStatus], space: Space) -> Figure:
    """Draws an axis for every key of the space and one for the metric, and a line for every trial.

    Args:
        ranked: The trials, the best first.
        space: The values that keys may have.

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    played = [now for now in ranked if now.value is not None]
    figure = Figure(figsize=(max(2.0 * (len(space) + 1), 5.0), 4.4), layout="constrained")
    panel = figure.subplots()
    heights = [[height(of, now.trial.values[key]) for key, of in space.items()] for now in played]
    ends = np.array([now.value for now in played], np.float64)
    low, high = (float(ends.min()), float(ends.max())) if played else (0.0, 1.0)
    middle = 0.5 if high == low else None
    lines = [
        [*own, middle if middle is not None else (float(end) - low) / (high - low)]
        for own, end in zip(heights, ends, strict=True)
    ]
    for line, color in reversed(list(zip(lines, _colors(played), strict=True))):
        panel.plot(range(len(line)), line, color=color, linewidth=1.2, alpha=0.85, marker=".")
    for place, (_key, of) in enumerate(space.items()):
        _draw_scale(panel, place, [(height(of, value), value_text(value)) for value in scale(of)])
    marks = [(0.5, value_text(low))] if middle is not None else [(0.0, value_text(low)), (1.0, value_text(high))]
    _draw_scale(panel, len(space), marks)
    metric = ranked[0].metric if ranked else ""
    panel.set_xticks(range(len(space) + 1), [key.replace(".", ".\n") for key in space] + [metric.replace("_", "_\n")])
    panel.set_yticks([])
    panel.set_ylim(-0.05, 1.05)
    panel.set_xlim(-0.1, len(space) + 0.5)
    panel.spines[["top", "right", "left", "bottom"]].set_visible(False)
    return figure


def height(of: Choice | Range, value: Any) -> float:
    """Places a value on its key's axis.

    Args:
        of: The values that the key may have.
        value: One of them.

    Returns:
        Where it is, in [0, 1].
    """
    if isinstance(of, Choice):
        return of.values.index(value) / (len(of.values) - 1) if len(of.values) > 1 else 0.5
    low, high, at = (np.log([of.low, of.high, value]) if of.log else (of.low, of.high, value)).__iter__()
    return float(np.clip((at - low) / (high - low), 0.0, 1.0))


def scale(of: Choice | Range) -> list[Any]:
    """Picks the values that an axis names.

    Args:
        of: The values that the key may have.

    Returns:
        All of a list; of a range its ends and some between.
    """
    if isinstance(of, Choice):
        return list(of.values)
    marks = np.geomspace(of.low, of.high, _TICKS) if of.log else np.linspace(of.low, of.high, _TICKS)
    return list(dict.fromkeys(of.clip(float(mark)) for mark in marks))


def _draw_scale(panel: Axes, place: int, marks: Sequence[tuple[float, str]]) -> None:
    panel.axvline(place, color="0.5", linewidth=0.8, zorder=0)
    for at, text in marks:
        panel.annotate(text, (place, at), xytext=(4, 0), textcoords="offset points", fontsize="x-small", va="center")


def _colors(ranked: Sequence[TrialStatus]) -> list[Any]:
    """A color for each trial by its place; the brightest end of the map, which is faint on white, is left out."""
    from matplotlib import colormaps

    return list(colormaps["viridis"](np.linspace(0.85, 0.0, len(ranked)))) if len(ranked) else []
