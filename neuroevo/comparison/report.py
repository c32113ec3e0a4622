"""Reports on a comparison: tables as text and CSV, curves, and a page of what differs between the simulators.

table.md         results, per task and contender, and throughput
results.csv      a row per contender, task and seed
curves.png       test returns against steps and against wall time
throughput.png   steps per second against the batch size
differences.md   what differs between our tasks and Brax's
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from neuroevo.analysis.curves import figure_files
from neuroevo.comparison.plots import draw_curves, draw_throughput
from neuroevo.comparison.runner import JobResult, done
from neuroevo.comparison.settings import CONTENDERS, Comparison
from neuroevo.core.errors import cannot_write
from neuroevo.core.statistics import summarize
from neuroevo.sessions.provenance import machine
from neuroevo.system.files import write_atomically

BARE = "Brax's step alone"


def useful_rate(result: JobResult) -> float:
    """Steps of episodes, those of tests included, per second that was not spent on compiling."""
    last = result.rows[-1]
    return (last["steps"] + last["test_steps"]) / max(last["seconds"] - last["compile_seconds"], 1e-9)


def results_table(results: Sequence[JobResult]) -> list[list[str]]:
    """A row for each task and contender, the titles first.

    Args:
        results: Of jobs of the kind "evolve".
    """
    head = "task | contender | seeds | return | 95% interval | steps | useful steps/s | wall time | compiling | memory"
    rows = [[*head.split(" | "), "energy"]]
    for task, contender, own in grouped(results):
        last = [each.rows[-1] for each in own]
        score = summarize(np.array([row["test_mean"] for row in last], np.float64))
        assert score.mean is not None  # there is at least one result
        compiling = max(row["compile_seconds"] for row in last)
        joules = [each.joules for each in own if each.joules is not None]
        rows.append(
            [
                task,
                CONTENDERS[contender],
                str(score.n),
                f"{score.mean:,.1f}",
                "-" if score.low is None else f"{score.low:,.1f} to {score.high:,.1f}",
                f"{statistics.mean(row['steps'] for row in last):,.0f}",
                f"{statistics.median(map(useful_rate, own)):,.0f}",
                f"{statistics.median(row['seconds'] - row['compile_seconds'] for row in last):,.1f} s",
                f"{compiling:,.1f} s" if compiling else "-",
                f"{max(each.memory_mb for each in own):,.0f} MB",
                f"{statistics.mean(joules):,.0f} J" if joules else "-",
            ]
        )
    return rows


def ratios(results: Sequence[JobResult]) -> list[str]:
    """How many times as many useful steps per second our evaluator does as others on the same simulator, by task."""
    rates = {(task, name): [useful_rate(each) for each in own] for task, name, own in grouped(results)}
    lines = []
    for task in dict.fromkeys(task for task, _ in rates):
        for name in ("brax", "evosax"):
            pairs = list(zip(rates.get((task, "accelerated"), []), rates.get((task, name), []), strict=False))
            if pairs:
                each = [ours / theirs for ours, theirs in pairs]
                seeds = ", ".join(f"{value:.2f}" for value in each)
                lines.append(
                    f"- {task}: {CONTENDERS['accelerated']} does {statistics.median(each):.2f} times the useful steps "
                    f"per second of {CONTENDERS[name]} (seed by seed, in turns: {seeds})"
                )
    return lines


def throughput_table(results: Sequence[JobResult]) -> list[list[str]]:
    """A row for each task and batch size with a column for each contender, the titles first.

    Args:
        results: Of jobs of the kind "throughput".
    """
    names = list(dict.fromkeys(each.job.contender for each in results))
    rows = [["task", "batch", *(CONTENDERS.get(name, BARE) for name in names)]]
    for task in dict.fromkeys(each.job.experiment.task for each in results):
        own = {each.job.contender: each for each in results if each.job.experiment.task == task}
        for width in sorted({row["width"] for each in own.values() for row in each.rows}):
            cells = [_rate(own.get(name), width) for name in names]
            rows.append([task, f"{width:,}", *cells])
    return rows


def _rate(result: JobResult | None, width: int) -> str:
    rows = [] if result is None else [row for row in result.rows if row["width"] == width]
    return f"{rows[0]['steps_per_s']:,.0f}" if rows else "-"


def differences_page(results: Sequence[JobResult], backend: str) -> str:
    """What differs, per task; rows that are equal are left out.

    Args:
        results: Of jobs of the kind "differences".
        backend: Brax's physics.
    """
    text = [
        "# What differs between our MuJoCo tasks and Brax's",
        "",
        "Our C++ lanes play Gymnasium's tasks with MuJoCo, in float64. Brax plays its own tasks of the same robots,",
        f"here with the physics `{backend}`, in float32. Everything below is read from what is played. The contender",
        "with Brax's model plays our task with Brax's file of the robot: of the rows about the model Brax's hold for",
        "it, of those about observations, rewards and ends ours.",
    ]
    for result in results:
        rows = [[row["what"], row["neuroevo"], row["brax"]] for row in result.rows]
        different = [row for row in rows if row[1] != row[2]]
        text += ["", f"## {result.job.experiment.task}", ""]
        text += markdown([["", "neuroevo (Gymnasium)", "Brax"], *different])
        text += ["", f"Equal: {', '.join(row[0] for row in rows if row[1] == row[2])}."]
    return "\n".join(text) + "\n"


def grouped(results: Sequence[JobResult]) -> list[tuple[str, str, list[JobResult]]]:
    """Results by task and contender, in their order."""
    groups: dict[tuple[str, str], list[JobResult]] = {}
    for each in results:
        groups.setdefault((each.job.experiment.task, each.job.contender), []).append(each)
    return [(task, contender, own) for (task, contender), own in groups.items()]


def markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as lines, of which all columns but the first two are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [line(rows[0]), line("-" * width for width in widths), *map(line, rows[1:])]


def write_report(comparison: Comparison) -> str:
    """Writes the files.

    Args:
        comparison: The comparison, of which some jobs need not be done.

    Returns:
        table.md.

    Raises:
        UserError: They cannot be written there.
        DiskError: The disk is full or broken.
    """
    results = done(comparison.jobs, comparison.out)
    of = {kind: [each for each in results if each.job.kind == kind] for kind in ("evolve", "throughput", "differences")}
    text = _page(comparison, of["evolve"], of["throughput"])
    files = {"table.md": text.encode()}
    if of["differences"]:
        files["differences.md"] = differences_page(of["differences"], comparison.settings.backend).encode()
    if of["evolve"]:
        files["results.csv"] = _csv(of["evolve"])
        files |= figure_files(draw_curves(of["evolve"]))
    if of["throughput"]:
        files |= figure_files(draw_throughput(of["throughput"]), "throughput")
    try:
        for name, data in files.items():
            write_atomically(comparison.out / name, data)
    except OSError as error:
        raise cannot_write(f"the report into {comparison.out}", error) from error
    return text


def _page(comparison: Comparison, evolved: Sequence[JobResult], rates: Sequence[JobResult]) -> str:
    chosen, here = comparison.settings, machine()
    packages = [f"{name} {found}" for name in _PACKAGES if (found := _version(name)) is not None]
    missing = len(comparison.jobs) - len(done(comparison.jobs, comparison.out))
    text = [
        f"# Evolution beside the accelerator simulator: {', '.join(task.name for task in chosen.tasks)}",
        "",
        f"{here['cpu']}, {comparison.devices} of {here['cores']} cores used by everybody, GPUs: "
        f"{', '.join(here['gpus']) or 'none'}. {', '.join(packages)}.",
        "",
        f"The same evolution strategy everywhere: antithetic pairs, {chosen.population} genomes a generation, one",
        f"episode each, sigma {chosen.sigma:g}, centered ranks, Adam with {chosen.learning_rate:g}, hidden layers",
        f"{chosen.hidden} with tanh; {chosen.test_episodes} test episodes of the center after each generation. Brax's",
        f"physics: {chosen.backend}. Steps an episode and generations: "
        + ", ".join(f"{each.name} {each.episode_length:,} and {each.generations}" for each in chosen.tasks)
        + ".",
        "Initial weights are of one law but other draws, and episodes start from other draws, so single seeds differ.",
        f"neuroevo on Brax plays {chosen.lanes or chosen.population} episodes side by side, and the next where one",
        "ends; the others play all at once.",
    ]
    if evolved:
        text += [
            "",
            *markdown(results_table(evolved)),
            "",
            "return: mean over seeds of the last center's mean test return, each in its own environment, with",
            "Student's interval. steps: of the population's episodes, to their ends. useful steps/s: these and the",
            "tests' steps by the wall time without compiling; median over seeds. wall time: of training without",
            "compiling, median. compiling: tracing and compiling of the first seed; the others, in the same process,",
            "find most of it done. Brax's ES and evosax get Brax's environment with its reset and its step compiled by",
            "themselves, which halves their compiling. memory: the largest resident.",
            "",
            *ratios(evolved),
        ]
    if rates:
        text += [
            "",
            "## Steps per second, without evolution",
            "",
            *markdown(throughput_table(rates)),
            "",
            "batch: environments side by side. neuroevo's columns include a network of its own for each environment;",
            f"'{BARE}' has random actions, and goes back to its first state where an episode is over.",
        ]
    if missing:
        text += ["", f"{missing} of {len(comparison.jobs)} jobs are not done."]
    return "\n".join(text) + "\n"


_PACKAGES = ("brax", "jax", "mujoco", "mujoco-mjx", "evosax")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _csv(results: Sequence[JobResult]) -> bytes:
    text = io.StringIO()
    rows: list[dict[str, Any]] = []
    for each in results:
        own = each.job.experiment
        about = {"task": own.task, "contender": each.job.contender, "seed": own.seed}
        rest = {"memory_mb": each.memory_mb, "joules": each.joules}
        rows += [{**about, **row, **rest} for row in each.rows]
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
