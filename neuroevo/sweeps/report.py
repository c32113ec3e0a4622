"""Report on the results of a sweep: tables as text and CSV, a row per trial as CSV, and figures.

table.txt                    grid: a row per game and configuration with scores over seeds, and over all games;
                             search: the trials, the best first
table.csv                    grid: the same rows
runs.csv                     a row per trial
aggregates.csv               a row per configuration: normalized scores over all games, with sweep.normalize
improvement.csv              likewise, probability of improvement for each pair of configurations
curves.png, curves.pdf       learning curves against frames (analysis/curves), and curves_time.* against wall time;
                             search: the metric of each trial
profiles.*                   performance profiles of normalized scores
parallel.*, importance.*, slices.*    search: Optuna's plots of values and metric

An unfinished trial counts with its generations so far; table.txt lists these trials at its end.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from neuroevo.analysis.curves import XAxis, figure_files
from neuroevo.core.errors import cannot_write
from neuroevo.core.statistics import interquartile_mean, summarize
from neuroevo.sweeps.aggregates import aggregates, bounds, improvements, last_scores
from neuroevo.sweeps.figures import draw_curves, draw_profiles, search_figures
from neuroevo.sweeps.implementations import Row
from neuroevo.sweeps.space import SEED, Space, value_text
from neuroevo.sweeps.status import TrialStatus, describe, grouped, number, rank
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import Sweep
from neuroevo.system.console import clock
from neuroevo.system.files import write_atomically

AXES: dict[XAxis, str] = {"frames": "curves", "time": "curves_time"}
"""File name of a grid's learning curves for each x axis."""


def lines(statuses: Sequence[TrialStatus]) -> list[Row]:
    """Return the rows of table.csv, one per game and configuration, in the order of the sweep."""
    return [_line(game, config, of) for (game, config), of in grouped(statuses).items()]


def _line(game: str, config: str, statuses: Sequence[TrialStatus]) -> Row:
    """Return a row of table.csv. Means and sums are over the runs with a score, one per seed. None means unknown."""
    played = [each for each in statuses if each.played]
    last = [each.rows[-1] for each in played]
    scores = last_scores(statuses)
    score, iqm = summarize(scores), interquartile_mean([scores])
    rates = [each.steps_per_s for each in played if each.steps_per_s is not None]

    def mean(key: str, more: int = 0) -> float | None:
        return float(np.mean([row[key] + more for row in last])) if last else None

    return {
        "game": game,
        "config": config,
        "runs": len(statuses),
        "finished": sum(each.trial.status == "finished" and not each.reason for each in statuses),
        "seeds": score.n,
        "score_of": statuses[0].score_of,
        "score_mean": score.mean,
        "score_standard_error": score.standard_error,
        **bounds("score", score),
        "score_iqm": iqm.mean,
        **bounds("score_iqm", iqm),
        "generations_mean": mean("generation", 1),
        "frames_mean": mean("frames_total"),
        "steps_per_s": float(np.median(rates)) if rates else None,
        "seconds_mean": mean("seconds_total"),
        "seconds_sum": round(sum(row["seconds_total"] for row in last), 3),
    }


def run_row(now: TrialStatus, space: Space) -> Row:
    """Return the row of runs.csv for a trial; unknown values are None."""
    last = now.rows[-1] if now.rows else {}
    return {
        "trial": now.trial.number,
        "game": now.trial.game,
        "config": now.trial.label,
        "seed": now.trial.seed,
        **{key: now.trial.seed if key == SEED else now.trial.values[key] for key in space},
        "status": now.trial.status,
        now.metric: now.value,
        "score_of": now.score_of,
        "score": now.score(now.played[-1]) if now.played else None,
        **bounds("test", now.test),
        "generations": len(now.rows),
        "steps": last.get("steps_total"),
        "frames": last.get("frames_total"),
        "seconds": last.get("seconds_total"),
        "steps_per_s": now.steps_per_s,
        "folder": now.trial.folder,
    }


def tables_of(sweep: Sweep, statuses: Sequence[TrialStatus]) -> dict[str, list[Row]]:
    """Return the tables of a grid's report by the names of their CSV files; empty for other searches."""
    if sweep.settings.search != "grid":
        return {}
    over_games = {"aggregates": aggregates, "improvement": improvements}
    return {"table": lines(statuses), **{name: rows(statuses, sweep.scales) for name, rows in over_games.items()}}


def text_of(sweep: Sweep, statuses: Sequence[TrialStatus], tables: dict[str, list[Row]]) -> str:
    """Format the tables as text, followed by explanations of the columns and a list of the unfinished trials."""
    text = _grid_text(**tables) if tables else _search_text(statuses, sweep.space)
    missing = [f"  {each.trial.name}: {_missing(each)}" for each in statuses if not each.ended]
    if missing:
        text += ["", f"{len(missing)} of {sweep.trials} trials are not finished:", *missing]
    if unread := [f"  {each.trial.name}: {each.reason}" for each in statuses if each.ended and each.reason]:
        text += ["", f"{len(unread)} of {sweep.trials} trials cannot be read:", *unread]
    return "\n".join(line.rstrip() for line in text) + "\n"


def _missing(now: TrialStatus) -> str:
    how = f"{now.trial.status}, {describe(now.config, now.rows[-1])}" if now.rows else now.trial.status
    return f"{how}: {now.reason.splitlines()[0]}" if now.reason else how


def _search_text(statuses: Sequence[TrialStatus], space: Space) -> list[str]:
    metric = statuses[0].metric
    cells: list[list[Any]] = [["trial", *space, metric, "test mean", "95% interval", "generations", "steps", "status"]]
    for now in sorted(statuses, key=lambda now: rank(now.value, now.trial)):
        row = run_row(now, space)
        values = [value_text(row[key]) for key in space]
        numbers = [number(now.value, 2), number(now.test.mean, 2), _interval(row, "test", 2)]
        cells.append([row["trial"], *values, *numbers, row["generations"], number(row["steps"]), row["status"]])
    notes = (
        f"{metric}: of a trial's last generation; test mean and 95% interval (Student's t): of the newest elite that",
        "has played its test episodes. The best of many trials is biased upward by selection; rerun it with new seeds.",
    )
    return _table(cells, 1, *notes)


def _grid_text(table: Sequence[Row], aggregates: Sequence[Row], improvement: Sequence[Row]) -> list[str]:
    cells = [["game", "config", "seeds", "finished", "score", "std. error", "95% interval", "IQM", "95% interval"]]
    cells[0] += ["score of", "gens", "frames", "steps/s", "time/run", "total time"]
    for row in table:
        digits = 1 if row["score_mean"] is None or abs(row["score_mean"]) >= 100 else 2
        error = "n=1" if row["seeds"] == 1 else number(row["score_standard_error"], digits)
        scores = [number(row["score_mean"], digits), error, _interval(row, "score", digits)]
        scores += [number(row["score_iqm"], digits), _interval(row, "score_iqm", digits)]
        generations = number(row["generations_mean"], 1).removesuffix(".0")
        costs = [generations, number(row["frames_mean"]), number(row["steps_per_s"])]
        costs += ["-" if row["seconds_mean"] is None else clock(row["seconds_mean"]), clock(row["seconds_sum"])]
        finished = f"{row['finished']} of {row['runs']}"
        cells.append([row["game"], row["config"], row["seeds"], finished, *scores, row["score_of"], *costs])
    notes = (
        "score: mean return of a run's last elite in its test episodes or, without test episodes, in its validation",
        "episodes, by which it was selected. Mean over seeds, standard error and Student's t interval; IQM:",
        "interquartile mean over seeds with a bootstrap interval. gens, frames (of population and validation episodes)",
        "and time/run are means over the same runs; steps/s is the median over runs of the steps of all episodes per",
        "second, without the first generation, in which programs may be compiled.",
    )
    text = _table(cells, 2, *notes)
    if aggregates:
        cells = [["all games", "games", "runs", "IQM", "95% interval"]]
        for row in aggregates:
            cells.append([row["config"], row["games"], row["runs"], number(row["iqm"], 3), _interval(row, "iqm", 3)])
        note = "Scores are normalized per game by sweep.normalize; the interval is stratified by game."
        text += ["", *_table(cells, 1, note)]
    if improvement:
        cells = [["better", "than", "probability", "95% interval"]]
        for row in improvement:
            cells.append([row["config"], row["than"], number(row["probability"], 3), _interval(row, "", 3)])
        note = "Probability that a seed of the first has a higher score than a seed of the second, averaged over games."
        text += ["", *_table(cells, 2, note)]
    return text


def _table(cells: Sequence[Sequence[Any]], left: int, *notes: str) -> list[str]:
    """Return the lines of a table, whose first row is the header, and notes. `left` columns are left-aligned."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(*cells, strict=True)]
    formats = [f"{{:{'<' if at < left else '>'}{width}}}" for at, width in enumerate(widths)]
    text = ["  ".join(formats).format(*map(str, row)) for row in cells]
    return [text[0], "-" * len(text[0]), *text[1:], "", *notes]


def _interval(row: Row, name: str, digits: int) -> str:
    low, high = (row[f"{name}_{bound}95".removeprefix("_")] for bound in ("low", "high"))
    return "-" if low is None else f"{number(low, digits)} to {number(high, digits)}"


def write_report(sweep: Sweep, statuses: Sequence[TrialStatus], study: Study) -> str:
    """Write the files of the report on one or more trials, ordered by number, and return the text table.

    Raises:
        UserError: The files cannot be written.
        DiskError: The disk is full or broken.
    """
    from matplotlib import rc_context  # imported here, as it takes a third of a second

    tables, grid = tables_of(sweep, statuses), sweep.settings.search == "grid"
    text = text_of(sweep, statuses, tables)
    files = {"table.txt": text.encode(), "runs.csv": _csv(run_row(now, sweep.space) for now in statuses)}
    files |= {f"{name}.csv": _csv(rows) for name, rows in tables.items() if rows}
    try:
        for name, data in files.items():
            write_atomically(sweep.out / name, data)
        # Draw figures last, so that the tables exist even if drawing fails.
        figures = {name: draw_curves(statuses, axis) for axis, name in AXES.items()} if grid else search_figures(study)
        if sweep.scales:
            figures["profiles"] = draw_profiles(statuses, sweep.scales)
        with rc_context({} if grid else {"savefig.bbox": "tight"}):  # labels of Optuna's plots lie outside
            for title, figure in figures.items():
                for name, data in figure_files(figure, title).items():
                    write_atomically(sweep.out / name, data)
    except OSError as error:
        raise cannot_write(f"the report into {sweep.out}", error) from error
    return text


def _csv(rows: Iterable[Row]) -> bytes:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
