"""Figures of a sweep: learning curves and performance profiles of a grid, and Optuna's plots of a search."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.analysis.curves import COLORS, Curve, Group, XAxis, curve, draw
from neuroevo.sweeps.aggregates import normalized
from neuroevo.sweeps.status import TrialStatus, grouped
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import Scales

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from optuna import Study as OptunaStudy


def curve_of(now: TrialStatus, x: XAxis = "frames") -> Curve:
    """Return the learning curve of a trial; it is empty if no generation has a score."""
    return curve(now.rows, f"{now.score_of}_mean", x)


def draw_curves(statuses: Sequence[TrialStatus], x: XAxis = "frames") -> Figure:
    """Draw a grid's learning curves: a panel per game, with a line of consistent color per configuration."""
    kinds = {each.score_of for each in statuses}
    groups = []
    for (game, label), own in grouped(statuses).items():
        kind = f", {own[0].score_of}" if len(kinds) > 1 else ""
        groups.append(Group(game, f"{label}{kind}", [curve_of(each, x) for each in own if each.played]))
    return draw(groups, x, f"elite's {kinds.pop()} return" if len(kinds) == 1 else "elite's return")


def draw_profiles(statuses: Sequence[TrialStatus], scales: Scales) -> Figure:
    """Draw performance profiles: the share of a grid's trials above each normalized score, averaged over games."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5, 4.0), layout="constrained")
    panel = figure.subplots()
    found = normalized(statuses, scales)
    scores = [score for games in found.values() for own in games.values() for score in own]
    marks = np.linspace(min([0.0, *scores]), max([1.0, *scores]), 201)
    for place, (group, games) in enumerate(found.items()):
        if games:
            above = np.mean([(own[:, None] > marks).mean(0) for own in games.values()], axis=0)
            panel.plot(marks, above, color=COLORS[place % len(COLORS)], drawstyle="steps-post", label=group)
    panel.set(xlabel="normalized score", ylabel="share of trials above it", ylim=(-0.02, 1.02))
    panel.grid(alpha=0.3, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)
    if scores:
        panel.legend(frameon=False, fontsize="small")
    return figure


def search_figures(study: Study) -> dict[str, Figure]:
    """Return Optuna's plots of a search by file name, as far as there are enough trials."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from optuna.importance import PedAnovaImportanceEvaluator
    from optuna.visualization import matplotlib as plots

    finished = [each for each in study.study.get_trials(deepcopy=False) if each.state.name == "COMPLETE"]
    wanted: dict[str, Callable[[OptunaStudy], Any]] = {"curves": plots.plot_intermediate_values}
    if len(finished) > 1:
        wanted |= {"parallel": plots.plot_parallel_coordinate, "slices": plots.plot_slice}
    if len({each.value for each in finished}) > 1:
        wanted["importance"] = partial(plots.plot_param_importances, evaluator=PedAnovaImportanceEvaluator())
    figures = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the plots are experimental
        for name, draw_with in wanted.items():
            figures[name] = np.ravel(draw_with(study.study))[0].figure
            pyplot.close(figures[name])
    return figures
