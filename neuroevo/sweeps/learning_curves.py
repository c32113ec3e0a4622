"""Learning curves of a suite: one panel per game with one line per configuration, the elite's score against frames.

A run's curve is a step function: from the end of one generation to the end of the next, its value is the score of the
former generation's elite. The thick line is the mean over a configuration's seeds, and the band is the 95% confidence
interval of that mean (Student's t). Both are drawn only where all of these runs have a score, from the latest first
generation to the earliest last one: beyond that the mean would be over fewer seeds, often the better ones, since those
play longer episodes. The thin lines are the single runs, up to their ends. A single run is a thick line without a band.
The height of a panel follows the runs: a much wider band, which is typical of two seeds, is cut off at the edges.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.sweeps.status import RunStatus, score, score_of
from neuroevo.system.statistics import summarize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which color-blind readers can tell apart; yellow is left out as too faint on white.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_STYLES = ("-", "--", "-.", ":")  # the next one for each round through the colors
_COLUMNS = 3


@dataclass(frozen=True)
class Curve:
    """A step function: scores[p] holds from frames[p] up to frames[p + 1].

    Attributes:
        frames: Frame counts in ascending order, int64 [P].
        scores: float64 [P].
    """

    frames: np.ndarray
    scores: np.ndarray

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Evaluates the function.

        Args:
            frames: Where, int64 [Q], none before the first of the curve's frames or after the last.

        Returns:
            The scores there, float64 [Q].
        """
        return self.scores[np.searchsorted(self.frames, frames, side="right") - 1]


@dataclass(frozen=True)
class Band:
    """Mean and confidence interval over runs, at the frames where all of them have a score; Q is 0 if there are none.

    Attributes:
        frames: Every point at which one of the runs' curves steps, int64 [Q].
        mean: Mean over the runs, float64 [Q].
        low: Lower bound of the mean's confidence interval, float64 [Q]; NaN for a single run.
        high: Upper bound, float64 [Q]; NaN for a single run.
    """

    frames: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def curve(now: RunStatus) -> Curve:
    """Makes the learning curve of a run.

    Args:
        now: The run.

    Returns:
        The curve; P is 0 if no generation has a score.
    """
    rows = now.played
    return Curve(
        np.array([row["frames_total"] for row in rows], np.int64),
        np.array([score(row, now.run) for row in rows], np.float64),
    )


def band(curves: Sequence[Curve]) -> Band:
    """Computes the mean and confidence interval over curves.

    Args:
        curves: One curve per run, each with at least one point.

    Returns:
        The band.
    """
    begin = max(each.frames[0] for each in curves)
    end = min(each.frames[-1] for each in curves)
    steps = np.unique(np.concatenate([each.frames for each in curves]))
    frames = steps[(steps >= begin) & (steps <= end)]
    scores = np.array([each.at(frames) for each in curves])  # [runs, Q]
    of = [summarize(column) for column in scores.T]
    bounds = [(each.mean, each.low, each.high) for each in of]
    mean, low, high = np.array(bounds, np.float64).reshape(-1, 3).T
    return Band(frames, mean, low, high)


def draw(statuses: Sequence[RunStatus]) -> Figure:
    """Draws the figure; a configuration has the same color in every panel.

    Args:
        statuses: The runs of a suite.

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    games = list(dict.fromkeys(each.run.game for each in statuses))
    labels = list(dict.fromkeys(each.run.label for each in statuses))
    columns = 2 if len(games) == 4 else min(len(games), _COLUMNS)
    rows = -(-len(games) // columns)
    figure = Figure(figsize=(4.6 * columns, (3.4 + 0.2 * len(labels)) * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, game in zip(panels, games, strict=False):
        _draw_game(panel, [each for each in statuses if each.run.game == game], labels)
        panel.set_title(game)
    for panel in panels[len(games) :]:
        panel.set_axis_off()
    figure.supxlabel("thick: mean over n seeds with its 95% interval; thin: the runs", fontsize="small")
    return figure


def _draw_game(panel: Axes, statuses: Sequence[RunStatus], labels: Sequence[str]) -> None:
    """Draws the runs of one game; `labels` are those of all configurations and determine the colors."""
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    kinds = {score_of(each.run) for each in statuses}
    for index, label in enumerate(labels):
        own = [each for each in statuses if each.run.label == label]
        curves = [curve(each) for each in own if each.played]
        if own:
            kind = f", {score_of(own[0].run)}" if len(kinds) > 1 else ""
            style = _STYLES[index // len(_COLORS) % len(_STYLES)]
            _draw_config(panel, curves, _COLORS[index % len(_COLORS)], style, f"{label} (n={len(curves)}{kind})")
    panel.set_xlabel("frames")
    panel.set_ylabel(f"elite's {kinds.pop()} return" if len(kinds) == 1 else "elite's return")
    panel.set_xlim(left=0)
    _limit_height(panel, [each.scores for each in map(curve, statuses)])
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    panel.grid(alpha=0.3, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False, fontsize="small")  # below the curves


def _limit_height(panel: Axes, scores: Sequence[np.ndarray]) -> None:
    """Limits the space above and below the scores to half of their range on each side."""
    low, high = panel.get_ylim()
    every = np.concatenate(scores)
    room = np.ptp(every) / 2 if every.size else 0.0
    if room > 0:
        panel.set_ylim(max(low, every.min() - room), min(high, every.max() + room))


def _draw_config(panel: Axes, curves: Sequence[Curve], color: str, style: str, label: str) -> None:
    """Draws the runs of one configuration."""
    common: dict[str, Any] = {"color": color, "linestyle": style, "drawstyle": "steps-post"}
    for each in curves if len(curves) > 1 else ():
        dot = "." if len(each.frames) == 1 else None  # a line through one point is invisible
        panel.plot(each.frames, each.scores, linewidth=0.6, alpha=0.45, marker=dot, **common)
    of = band(curves) if curves else Band(*np.zeros((4, 0)))
    dot = "o" if len(of.frames) == 1 else None
    panel.plot(of.frames, of.mean, linewidth=1.8, marker=dot, label=label, **common)
    if len(curves) > 1:
        panel.fill_between(of.frames, of.low, of.high, step="post", color=color, alpha=0.2, linewidth=0)


def figure_files(figure: Figure, name: str = "curves") -> dict[str, bytes]:
    """Renders the figure as PNG for the screen and as PDF for a paper; the same figure gives the same bytes.

    Args:
        figure: The figure, such as draw() returned.
        name: What the files are called.

    Returns:
        The contents of the files by name, such as "curves.png" and "curves.pdf".
    """
    from matplotlib import rc_context

    files = {}
    formats: dict[str, dict[str, Any]] = {
        f"{name}.png": {"dpi": 150},
        f"{name}.pdf": {"metadata": {"CreationDate": None}},
    }
    for file, options in formats.items():
        data = io.BytesIO()
        with rc_context({"pdf.fonttype": 42}):  # embed fonts as TrueType, as publishers require
            figure.savefig(data, format=file.rpartition(".")[2], **options)
        files[file] = data.getvalue()
    return files
