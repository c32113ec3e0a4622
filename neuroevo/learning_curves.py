"""Learning curves of a suite: a panel per game, in it a line per configuration, the elite's score against frames.

A run's curve is a step function: from the end of a generation to the end of the next one it is the score of the first
one's elite. The thick line is the mean over a configuration's seeds and the band is the 95% confidence interval of that
mean (Student's t). Both are drawn where all of these runs have a score, from the latest first generation to the
earliest last one: further on a mean would be over fewer seeds, often the better ones, since theirs are the longer
episodes. The thin lines are the runs themselves, to their ends. One run alone is a thick line without a band. The
panel is made for the runs: a band that is much wider, as those of two seeds are, leaves it at the edges.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuroevo.statistics import summarize
from neuroevo.suite_standing import Standing, score, score_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which color-blind readers can tell apart; yellow left out, it is faint on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_STYLES = ("-", "--", "-.", ":")  # of configurations past the last color
_COLUMNS = 3


@dataclass(frozen=True)
class Curve:
    """A step function: scores[p], float64 [P], holds from frames[p], int64 [P], on, up to the next."""

    frames: np.ndarray
    scores: np.ndarray

    def at(self, frames: np.ndarray) -> np.ndarray:
        """Scores at frames, int64 [Q], none of them before the first or after the last: float64 [Q]."""
        return self.scores[np.searchsorted(self.frames, frames, side="right") - 1]


@dataclass(frozen=True)
class Band:
    """Mean and confidence interval over runs where all have a score, float64 [Q]; Q is 0 where that is nowhere.

    frames: int64 [Q], every point at which one of the runs' curves steps. low and high are NaN for one run.
    """

    frames: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def curve(now: Standing) -> Curve:
    """The run's curve; P is 0 where no generation has a score."""
    rows = now.played
    return Curve(
        np.array([row["frames_total"] for row in rows], np.int64),
        np.array([score(row, now.run) for row in rows], np.float64),
    )


def band(curves: Sequence[Curve]) -> Band:
    """The band over curves, each of at least one point."""
    begin = max(each.frames[0] for each in curves)
    end = min(each.frames[-1] for each in curves)
    steps = np.unique(np.concatenate([each.frames for each in curves]))
    frames = steps[(steps >= begin) & (steps <= end)]
    scores = np.array([each.at(frames) for each in curves])  # [runs, Q]
    of = [summarize(column) for column in scores.T]
    bounds = [(each.mean, each.low, each.high) for each in of]
    mean, low, high = np.array(bounds, np.float64).reshape(-1, 3).T
    return Band(frames, mean, low, high)


def draw(standings: Sequence[Standing]) -> Figure:
    """The figure; a configuration has the same color in every panel."""
    from matplotlib.figure import Figure

    games = list(dict.fromkeys(each.run.game for each in standings))
    labels = list(dict.fromkeys(each.run.label for each in standings))
    columns = 2 if len(games) == 4 else min(len(games), _COLUMNS)
    rows = -(-len(games) // columns)
    figure = Figure(figsize=(4.6 * columns, (3.4 + 0.2 * len(labels)) * rows), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel, game in zip(panels, games, strict=False):
        _draw_game(panel, [each for each in standings if each.run.game == game], labels)
        panel.set_title(game)
    for panel in panels[len(games) :]:
        panel.set_axis_off()
    figure.supxlabel("thick: mean over n seeds with its 95% interval; thin: the runs", fontsize="small")
    return figure


def _draw_game(panel: Axes, standings: Sequence[Standing], labels: Sequence[str]) -> None:
    """Draws the standings, all of one game. labels: of all configurations, which their colors follow."""
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    kinds = {score_of(each.run) for each in standings}
    for index, label in enumerate(labels):
        own = [each for each in standings if each.run.label == label]
        curves = [curve(each) for each in own if each.played]
        if own:
            kind = f", {score_of(own[0].run)}" if len(kinds) > 1 else ""
            style = _STYLES[index // len(_COLOURS) % len(_STYLES)]
            _draw_config(panel, curves, _COLOURS[index % len(_COLOURS)], style, f"{label} (n={len(curves)}{kind})")
    panel.set_xlabel("frames")
    panel.set_ylabel(f"elite's {kinds.pop()} return" if len(kinds) == 1 else "elite's return")
    panel.set_xlim(left=0)
    _limit_height(panel, [each.scores for each in map(curve, standings)])
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    panel.grid(alpha=0.3, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False, fontsize="small")  # off the curves


def _limit_height(panel: Axes, scores: Sequence[np.ndarray]) -> None:
    """Leaves above and below the scores at most half of the height that they take."""
    low, high = panel.get_ylim()
    every = np.concatenate(scores)
    room = np.ptp(every) / 2 if every.size else 0.0
    if room > 0:
        panel.set_ylim(max(low, every.min() - room), min(high, every.max() + room))


def _draw_config(panel: Axes, curves: Sequence[Curve], color: str, style: str, label: str) -> None:
    """Draws the runs of one configuration."""
    common = {"color": color, "linestyle": style, "drawstyle": "steps-post"}
    for each in curves if len(curves) > 1 else ():
        dot = "." if len(each.frames) == 1 else None  # a line of one point is nothing
        panel.plot(each.frames, each.scores, linewidth=0.6, alpha=0.45, marker=dot, **common)
    of = band(curves) if curves else Band(*np.zeros((4, 0)))
    dot = "o" if len(of.frames) == 1 else None
    panel.plot(of.frames, of.mean, linewidth=1.8, marker=dot, label=label, **common)
    if len(curves) > 1:
        panel.fill_between(of.frames, of.low, of.high, step="post", color=color, alpha=0.2, linewidth=0)


def figure_files(figure: Figure) -> dict[str, bytes]:
    """The figure as files, by name: for the screen and for a paper. The same figure gives the same bytes."""
    from matplotlib import rc_context

    files = {}
    for name, options in {"curves.png": {"dpi": 150}, "curves.pdf": {"metadata": {"CreationDate": None}}}.items():
        data = io.BytesIO()
        with rc_context({"pdf.fonttype": 42}):  # fonts as TrueType, which publishers want
            figure.savefig(data, format=name.rpartition(".")[2], **options)
        files[name] = data.getvalue()
    return files
