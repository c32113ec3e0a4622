"""The figures of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neuroevo.comparison.runner import JobResult
from neuroevo.comparison.settings import CONTENDERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS = {name: f"C{index}" for index, name in enumerate([*CONTENDERS, "bare"])}


def draw_curves(results: Sequence[JobResult]) -> Figure:
    """Draws the center's test return after each generation: a row per task, against steps and against wall time.

    Args:
        results: Of jobs of the kind "evolve".

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(each.job.experiment.task for each in results))
    figure = Figure(figsize=(11, 3.4 * len(tasks) + 0.6), layout="constrained")
    rows = figure.subplots(len(tasks), 2, squeeze=False)
    for task, (steps, seconds) in zip(tasks, rows, strict=True):
        for each in (each for each in results if each.job.experiment.task == task):
            returns = [row["test_mean"] for row in each.rows]
            style = {"color": _COLORS[each.job.contender], "linewidth": 1.1, "alpha": 0.8}
            steps.plot([row["steps"] for row in each.rows], returns, **style)
            seconds.plot([row["seconds"] - row["compile_seconds"] for row in each.rows], returns, **style)
        _finish(steps, task, "steps of the population's episodes")
        _finish(seconds, task, "seconds of wall time, without compiling")
        seconds.set_xscale("log")
        steps.set_ylabel("center's test return")
    _legend(figure, [each.job.contender for each in results])
    return figure


def draw_throughput(results: Sequence[JobResult]) -> Figure:
    """Draws steps per second against the batch size, a panel per task.

    Args:
        results: Of jobs of the kind "throughput".

    Returns:
        A matplotlib figure.
    """
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(each.job.experiment.task for each in results))
    figure = Figure(figsize=(5.2 * len(tasks), 4), layout="constrained")
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    for task, panel in zip(tasks, panels, strict=True):
        for each in (each for each in results if each.job.experiment.task == task):
            widths = [row["width"] for row in each.rows]
            rates = [row["steps_per_s"] for row in each.rows]
            panel.loglog(widths, rates, marker="o", color=_COLORS[each.job.contender])
        _finish(panel, task, "batch")
    panels[0].set_ylabel("steps per second")
    _legend(figure, [each.job.contender for each in results])
    return figure


def _finish(panel: Axes, title: str, x: str) -> None:
    panel.set_title(title)
    panel.set_xlabel(x)
    panel.grid(alpha=0.3, linewidth=0.5)
    panel.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, names: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    shown = list(dict.fromkeys(names))
    lines = [Line2D([], [], color=_COLORS[name]) for name in shown]
    labels = [CONTENDERS.get(name, "Brax's step alone") for name in shown]
    figure.legend(lines, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
