"""Learning curves of a suite: one panel per game with one line per configuration, the elite's score on an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neuroevo.analysis.curves import Curve, Group, XAxis, curve, draw
from neuroevo.sweeps.status import RunStatus, score_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def curve_of(now: RunStatus, x: XAxis = "frames") -> Curve:
    """Makes the learning curve of a run.

    Args:
        now: The run.
        x: The axis.

    Returns:
        The curve; without points if no generation has a score.
    """
    return curve(now.rows, f"{score_of(now.run)}_mean", x)


def draw_suite(statuses: Sequence[RunStatus], x: XAxis = "frames") -> Figure:
    """Draws the figure; a configuration has the same color in every panel.

    Args:
        statuses: The runs of a suite.
        x: The axis.

    Returns:
        A matplotlib figure.
    """
    kinds = {score_of(each.run) for each in statuses}
    labels = list(dict.fromkeys(each.run.label for each in statuses))
    groups = []
    for game in dict.fromkeys(each.run.game for each in statuses):
        for label in labels:
            own = [each for each in statuses if (each.run.game, each.run.label) == (game, label)]
            if own:
                kind = f", {score_of(own[0].run)}" if len(kinds) > 1 else ""
                groups.append(Group(game, f"{label}{kind}", [curve_of(each, x) for each in own if each.played]))
    return draw(groups, x, f"elite's {kinds.pop()} return" if len(kinds) == 1 else "elite's return")
