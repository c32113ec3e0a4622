"""Learning curves: panels with a line per group of runs, an elite's score against frames, steps, time or generations.

A run's curve is a step function: from the end of one generation to the end of the next, its value is the score of the
former generation's elite. The thick line is the mean of a group's runs, and the band is the 95% confidence interval of
that mean (Student's t). The line starts where every run of the group has a score. From the end of the shortest run on,
finished runs keep their last score and the line is dotted: a mean of the remaining runs would cover fewer runs, often
the better ones, since those play longer episodes. Thin lines are individual runs. A group of one run is a thick line
without a band. The limits of the y axis follow the runs: a much wider band, typical of two seeds, is clipped.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from neuroevo.core.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which color-blind readers can distinguish, without yellow, which is too faint on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_STYLES = ("-", "--", "-.", ":")  # the next style after each cycle through the colors
_COLUMNS = 3
_LARGEST = 1e300  # limit of plotted values: plots compute sums and multiples of them
_WIDTH = 50  # characters per line of a legend, which must not be wider than a panel

XAxis: TypeAlias = Literal["frames", "steps", "time", "generations"]
Row: TypeAlias = Mapping[str, Any]

X_AXES: dict[XAxis, tuple[str, Callable[[Row], float]]] = {
    "frames": ("frames", lambda row: row["frames_total"]),
    "steps": ("environment steps", lambda row: row["steps_total"]),
    "time": ("minutes of wall time", lambda row: row["seconds_total"] / 60),
    "generations": ("generations", lambda row: row["generation"] + 1),
}
"""Title of each axis and the end of a generation on it; frames and steps count population and validation episodes."""


@dataclass(frozen=True)
class Curve:
    """Step function with value scores[p] from x[p] to x[p + 1], and the last score after the last step.

    Attributes:
        x: Positions of the steps, float64 [P], ascending.
        scores: Value from each step on, float64 [P].
    """

    x: np.ndarray
    scores: np.ndarray

    def at(self, x: np.ndarray) -> np.ndarray:
        """Evaluate the function.

        Args:
            x: Positions, float64 [Q], not before the first step.

        Returns:
            The scores at these positions, float64 [Q].
        """
        return self.scores[np.searchsorted(self.x, x, side="right") - 1]


def curve(rows: Iterable[Row], column: str, x: XAxis = "frames") -> Curve:
    """Make the curve of a run.

    Args:
        rows: Rows of the run's metrics, in order.
        column: The column to plot; rows without a value are skipped.
        x: The axis.

    Returns:
        The curve; P is 0 if no row has a value.
    """
    own = [row for row in rows if row.get(column) is not None]
    where = X_AXES[x][1]
    return Curve(
        np.array([where(row) for row in own], np.float64), drawn(np.array([row[column] for row in own], float))
    )


def drawn(values: np.ndarray) -> np.ndarray:
    """Clip values to [-1e300, 1e300], as plots show them.

    Args:
        values: Floats of any shape.
    """
    return np.clip(values, -_LARGEST, _LARGEST)


@dataclass(frozen=True)
class Band:
    """Mean and confidence interval of runs, from the first point where every run has a score; Q is 0 without runs.

    Attributes:
        x: Points at which the curve of at least one run steps, float64 [Q].
        mean: Mean of the runs, float64 [Q]; finished runs count with their last score.
        low: Lower bound of the mean's confidence interval, float64 [Q]; NaN for a single run.
        high: Upper bound, float64 [Q]; NaN for a single run.
        together: Number of leading points up to the end of the shortest run.
    """

    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    together: int

    def part(self, first: int, last: int) -> Band:
        """Return the points [first, last)."""
        part = slice(first, last)
        return Band(self.x[part], self.mean[part], self.low[part], self.high[part], self.together)


def band(curves: Sequence[Curve]) -> Band:
    """Compute the mean and confidence interval over curves.

    Args:
        curves: One curve per run, each with at least one point.

    Returns:
        The band.
    """
    if not curves:
        nothing = np.zeros(0)
        return Band(nothing, nothing, nothing, nothing, 0)
    begin = max(each.x[0] for each in curves)
    end = min(each.x[-1] for each in curves)
    steps = np.unique(np.concatenate([each.x for each in curves]))
    x = steps[steps >= begin]
    scores = np.array([each.at(x) for each in curves])  # [runs, Q]
    of = [summarize(column) for column in scores.T]
    bounds = [(each.mean, each.low, each.high) for each in of]
    mean, low, high = np.array(bounds, np.float64).reshape(-1, 3).T
    return Band(x, mean, low, high, int(np.sum(x <= end)))


@dataclass(frozen=True)
class Group:
    """Group of runs that is drawn as one thick line.

    Attributes:
        panel: Title of the group's panel.
        label: Label in the legend; a label has the same color in every panel.
        curves: Curves of the runs that have at least one score.
    """

    panel: str
    label: str
    curves: Sequence[Curve]


def draw(groups: Sequence[Group], x: XAxis, y: str) -> Figure:
    """Draw learning curves of groups of runs.

    Args:
        groups: The groups, in the order of panels and legend entries.
        x: The axis of the curves.
        y: Label of the y axis.

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    titles = list(dict.fromkeys(each.panel for each in groups))
    labels = list(dict.fromkeys(each.label for each in groups))
    columns = 2 if len(titles) == 4 else min(len(titles), _COLUMNS)
    rows = -(-len(titles) // columns)
    lines = sum(len(wrap(f"{label} (n=10)", _WIDTH)) for label in labels)
    figure = Figure(figsize=(4.6 * columns, (3.4 + 0.2 * lines) * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, title in zip(panels, titles, strict=False):
        own = [each for each in groups if each.panel == title]
        for group in own:
            _draw_group(panel, group, labels.index(group.label))
        panel.set_title(title)
        finish(panel, x, y, [each.scores for group in own for each in group.curves])
    for panel in panels[len(titles) :]:
        panel.set_axis_off()
    if any(len(each.curves) > 1 for each in groups):
        words = "thick: mean of n runs with 95% confidence interval,", "dotted after the first ends; thin: single runs"
        figure.supxlabel(("\n" if columns == 1 else " ").join(words), fontsize="small")
    return figure


def finish(panel: Axes, x: XAxis, y: str, scores: Sequence[np.ndarray]) -> None:
    """Set the axes and the legend of a panel.

    Args:
        panel: The panel, with its lines.
        x: The axis of its curves.
        y: Label of the y axis.
        scores: Scores of all curves in the panel.
    """
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    panel.set_xlabel(X_AXES[x][0])
    panel.set_ylabel(y)
    panel.set_xlim(left=0)
    _limit_height(panel, scores)
    panel.xaxis.set_major_formatter(EngFormatter(sep="") if x in ("frames", "steps") else StrMethodFormatter("{x:g}"))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    panel.grid(alpha=0.3, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False, fontsize="small")  # below the curves


def _limit_height(panel: Axes, scores: Sequence[np.ndarray]) -> None:
    """Limit the margins above and below the scores to half of their range."""
    low, high = panel.get_ylim()
    every = np.concatenate([np.zeros(0), *scores])
    room = np.ptp(every) / 2 if every.size else 0.0
    if room > 0:
        panel.set_ylim(max(low, every.min() - room), min(high, every.max() + room))


def _draw_group(panel: Axes, group: Group, index: int) -> None:
    """Draw the runs of a group; the index of its label determines color and line style."""
    color, curves = COLORS[index % len(COLORS)], group.curves
    style = _STYLES[index // len(COLORS) % len(_STYLES)]
    common: dict[str, Any] = {"color": color, "linestyle": style, "drawstyle": "steps-post"}
    for each in curves if len(curves) > 1 else ():
        dot = "." if len(each.x) == 1 else None  # a line through one point is invisible
        panel.plot(each.x, each.scores, linewidth=0.6, alpha=0.45, marker=dot, **common)
    of = band(curves)
    together, beyond = of.part(0, of.together), of.part(max(of.together - 1, 0), len(of.x))
    dot = "o" if len(together.x) == 1 else None
    label = fill(f"{group.label} (n={len(curves)})", _WIDTH)
    panel.plot(together.x, together.mean, linewidth=1.8, marker=dot, label=label, **common)
    if len(beyond.x) > 1:
        panel.plot(beyond.x, beyond.mean, linewidth=1.2, label="_beyond", **{**common, "linestyle": ":"})
    for part, alpha in ((together, 0.2), (beyond, 0.1)):
        if len(curves) > 1 and len(part.x):
            panel.fill_between(part.x, part.low, part.high, step="post", color=color, alpha=alpha, linewidth=0)


def figure_files(figure: Figure, name: str = "curves") -> dict[str, bytes]:
    """Render the figure as PNG for the screen and as PDF for a paper; the same figure gives the same bytes.

    Args:
        figure: The figure, such as the result of draw().
        name: Stem of the file names.

    Returns:
        The contents of the files by file name, such as "curves.png" and "curves.pdf".
    """
    return {f"{name}.{kind}": figure_bytes(figure, kind) for kind in ("png", "pdf")}


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """Render a figure; the same figure gives the same bytes.

    Args:
        figure: The figure.
        kind: "png", "pdf" or "svg".
    """
    from matplotlib import rc_context

    dates = {"pdf": "CreationDate", "svg": "Date"}
    options: dict[str, Any] = {"metadata": {dates[kind]: None}} if kind in dates else {"dpi": 150}
    data = io.BytesIO()
    # Publishers require TrueType fonts in PDFs; the salt makes identifiers in SVGs deterministic.
    with rc_context({"pdf.fonttype": 42, "svg.hashsalt": "neuroevo"}):
        figure.savefig(data, format=kind, **options)
    return data.getvalue()
