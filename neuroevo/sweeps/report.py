"""Report the results of a sweep: a table as text and CSV, a row per trial as CSV, and figures.

table.txt                    of a grid, a row per game and configuration: scores over seeds, and over all games; of a
                             search, the trials, the best first
table.csv                    the same rows of a grid
runs.csv                     a row per trial
aggregates.csv               a row per configuration: normalized scores over all games, where the sweep says how
improvement.csv              likewise, for every two configurations how likely one is better
curves.png, curves.pdf       learning curves against frames (analysis/curves), and curves_time.* against wall time; of a
                             search the metric of every trial
profiles.*                   performance profiles of normalized scores
parallel.*, importance.*, slices.*    of a search: Optuna's plots of values and metric

A trial that is not finished counts with the generations it has; the text names these trials at its end.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroevo.analysis.curves import XAxis, figure_files
from neuroevo.core.errors import cannot_write
from neuroevo.core.statistics import Summary, interquartile_mean, summarize
from neuroevo.sweeps.aggregates import Aggregate, Improvement, aggregates, improvements, last_scores
from neuroevo.sweeps.figures import draw_curves, draw_profiles, search_figures
from neuroevo.sweeps.points import SEED
from neuroevo.sweeps.space import Space, value_text
from neuroevo.sweeps.status import TrialStatus, ranked
from neuroevo.sweeps.study import Study
from neuroevo.sweeps.sweep import Sweep
from neuroevo.system.console import clock
from neuroevo.system.files import write_atomically

AXES: dict[XAxis, str] = {"frames": "curves", "time": "curves_time"}
"""What the learning curves of a grid are drawn against, and what the files are called."""


@dataclass(frozen=True)
class Line:
    """The results of one configuration on one game. Means and sums are over the `score.n` runs that have a score.

    Attributes:
        game: Name of the environment.
        config: Label of the configuration, with the values of the space's keys.
        runs: The number of trials, one per seed.
        finished: The number of them that are finished.
        score_of: The episodes that scores are from, "test" or "validation".
        score: Mean, standard error and 95% confidence interval of the scores of the runs' last elites.
        iqm: Interquartile mean of these scores with its bootstrap interval.
        generations_mean: Mean number of finished generations; None if no run has a score, like the other means.
        frames_mean: Mean number of frames of population and validation episodes.
        steps_per_s: Median over the runs of their steps per second after the first generation; None: there are none.
        seconds_mean: Mean wall time of a run in seconds; runs may have shared the machine.
        seconds_sum: Wall time of these runs added up, in seconds.
    """

    game: str
    config: str
    runs: int
    finished: int
    score_of: str
    score: Summary
    iqm: Summary
    generations_mean: float | None
    frames_mean: float | None
    steps_per_s: float | None
    seconds_mean: float | None
    seconds_sum: float

    def row(self) -> dict[str, Any]:
        """Returns the line as plain values, with None for a value that is not known."""
        return {
            "game": self.game,
            "config": self.config,
            "runs": self.runs,
            "finished": self.finished,
            "seeds": self.score.n,
            "score_of": self.score_of,
            "score_mean": self.score.mean,
            "score_standard_error": self.score.standard_error,
            "score_low95": self.score.low,
            "score_high95": self.score.high,
            "score_iqm": self.iqm.mean,
            "score_iqm_low95": self.iqm.low,
            "score_iqm_high95": self.iqm.high,
            "generations_mean": self.generations_mean,
            "frames_mean": self.frames_mean,
            "steps_per_s": self.steps_per_s,
            "seconds_mean": self.seconds_mean,
            "seconds_sum": self.seconds_sum,
        }


def lines(statuses: Sequence[TrialStatus]) -> list[Line]:
    """Returns the lines of the table, one per game and configuration, in the order of the sweep."""
    groups: dict[tuple[str, str], list[TrialStatus]] = {}
    for each in statuses:
        groups.setdefault((each.trial.game, each.group), []).append(each)
    return [_line(game, config, of) for (game, config), of in groups.items()]


def _line(game: str, config: str, statuses: Sequence[TrialStatus]) -> Line:
    played = [each for each in statuses if each.played]
    last = [each.rows[-1] for each in played]

    def mean(key: str) -> float | None:
        return float(np.mean([row[key] for row in last])) if last else None

    generations = mean("generation")
    scores = last_scores(statuses)
    rates = [rate for each in played if (rate := each.steps_per_s) is not None]
    return Line(
        game=game,
        config=config,
        runs=len(statuses),
        finished=sum(each.trial.status == "finished" and not each.reason for each in statuses),
        score_of=statuses[0].score_of,
        score=summarize(scores),
        iqm=interquartile_mean([scores]),
        generations_mean=None if generations is None else generations + 1,
        frames_mean=mean("frames_total"),
        steps_per_s=float(np.median(rates)) if rates else None,
        seconds_mean=mean("seconds_total"),
        seconds_sum=round(sum(row["seconds_total"] for row in last), 3),
    )


def run_row(now: TrialStatus, space: Space) -> dict[str, Any]:
    """Returns a trial as plain values, with None for a value that is not known."""
    last = now.rows[-1] if now.rows else {}
    scored, test = now.played[-1] if now.played else {}, now.test
    return {
        "trial": now.trial.number,
        "game": now.trial.game,
        "config": now.trial.label,
        "seed": now.trial.seed,
        **{key: _value(now, key) for key in space},
        "status": now.trial.status,
        now.metric: now.value,
        "score_of": now.score_of,
        "score": now.score(scored) if scored else None,
        "test_low95": test.low,
        "test_high95": test.high,
        "generations": len(now.rows),
        "steps": last.get("steps_total"),
        "frames": last.get("frames_total"),
        "seconds": last.get("seconds_total"),
        "steps_per_s": now.steps_per_s,
        "folder": now.trial.folder,
    }


def _value(now: TrialStatus, key: str) -> Any:
    return now.trial.seed if key == SEED else now.trial.values[key]


@dataclass(frozen=True)
class Tables:
    """What a report on a grid computes from its trials, by bootstrap; all empty for a search.

    Attributes:
        lines: Of the table of games and configurations.
        aggregates: Over all games.
        improvements: Between configurations.
    """

    lines: Sequence[Line] = ()
    aggregates: Sequence[Aggregate] = ()
    improvements: Sequence[Improvement] = ()


def tables_of(sweep: Sweep, statuses: Sequence[TrialStatus]) -> Tables:
    """Compute the tables of a report.

    Args:
        sweep: The sweep.
        statuses: Its trials.
    """
    if sweep.settings.search != "grid":
        return Tables()
    return Tables(lines(statuses), aggregates(statuses, sweep.scales), improvements(statuses, sweep.scales))


def text_of(sweep: Sweep, statuses: Sequence[TrialStatus], tables: Tables) -> str:
    """Formats the table as text, with an explanation of its columns and a list of the unfinished trials below it.

    Args:
        sweep: The sweep.
        statuses: Its trials.
        tables: What tables_of() returns.
    """
    text = _grid_text(tables) if sweep.settings.search == "grid" else _search_text(statuses, sweep.space)
    missing = [f"  {each.trial.name}: {_missing(each)}" for each in statuses if not each.ended]
    if missing:
        text += ["", f"{len(missing)} of {sweep.trials} trials are not finished:", *missing]
    if unread := [f"  {each.trial.name}: {each.reason}" for each in statuses if each.ended and each.reason]:
        text += ["", f"{len(unread)} of {sweep.trials} trials cannot be read:", *unread]
    return "\n".join(line.rstrip() for line in text) + "\n"


def _search_text(statuses: Sequence[TrialStatus], space: Space) -> list[str]:
    metric = statuses[0].metric
    rows = [["trial", *space, metric, "test mean", "95% interval", "generations", "steps", "status"]]
    for now in ranked(statuses):
        test, last = now.test, now.rows[-1] if now.rows else {}
        values = [value_text(_value(now, key)) for key in space]
        interval = "-" if test.low is None else f"{test.low:,.2f} to {test.high:,.2f}"
        steps = _number(last.get("steps_total"), 0)
        numbers = [_number(now.value, 2), _number(test.mean, 2), interval, str(len(now.rows)), steps]
        rows.append([str(now.trial.number), *values, *numbers, now.trial.status])
    return [
        *_aligned(rows, left=1),
        "",
        f"{metric} is of a trial's last generation; test mean and 95% interval (Student's t) are of the newest elite",
        "that has played its test episodes. The best of many trials is partly lucky; compare it again.",
    ]


def _grid_text(tables: Tables) -> list[str]:
    head = ["game", "config", "seeds", "finished", "score", "std. error", "95% interval", "IQM", "95% interval"]
    head += ["score of", "gens", "frames", "steps/s", "time/run", "time in all"]
    text = _aligned([head, *(_cells(line) for line in tables.lines)], left=2)
    text += [
        "",
        "score: mean return of a run's last elite in its test episodes, or, where there are none, in its validation",
        "episodes, by which it was chosen. Mean over seeds, its standard error and Student's t interval; IQM: mean of",
        "the middle half of the seeds, with a bootstrap interval. gens, frames (of population and validation episodes)",
        "and time/run are means over the same runs; steps/s: of all episodes, after the first generation, in which",
        "programs may be compiled, median.",
    ]
    if tables.aggregates:
        cells = [[each.config, str(each.games), str(each.iqm.n), *_iqm(each.iqm, 3)] for each in tables.aggregates]
        text += ["", *_aligned([["all games", "games", "runs", "IQM", "95% interval"], *cells], left=1)]
        text += ["", "Scores of each game normalized as the sweep says; the interval is stratified by game."]
    if tables.improvements:
        cells = [[each.config, each.than, *_iqm(each.probability, 3)] for each in tables.improvements]
        text += ["", *_aligned([["better", "than", "probability", "95% interval"], *cells], left=2)]
        text += ["", "How likely a seed of one has a higher score than a seed of the other, in the mean of the games."]
    return text


def _aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Lines of a table whose first row is its head; `left` columns begin at the left, the others end at the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = [
        "  ".join(cell.ljust(width) if at < left else cell.rjust(width) for at, (cell, width) in enumerate(pairs))
        for pairs in (zip(row, widths, strict=True) for row in rows)
    ]
    return [text[0], "-" * len(text[0]), *text[1:]]


def _iqm(of: Summary, digits: int) -> list[str]:
    return [_number(of.mean, digits), "-" if of.low is None else f"{of.low:,.{digits}f} to {of.high:,.{digits}f}"]


def _cells(line: Line) -> list[str]:
    """Formats the cells of a line of the text table."""
    of = line.score
    digits = 1 if of.mean is None or abs(of.mean) >= 100 else 2
    interval = "-" if of.low is None else f"{of.low:,.{digits}f} to {of.high:,.{digits}f}"
    return [
        line.game,
        line.config,
        str(of.n),
        f"{line.finished} of {line.runs}",
        _number(of.mean, digits),
        _number(of.standard_error, digits) if of.n != 1 else "n=1",
        interval,
        *_iqm(line.iqm, digits),
        line.score_of,
        "-" if line.generations_mean is None else f"{line.generations_mean:.1f}".removesuffix(".0"),
        _number(line.frames_mean, 0),
        _number(line.steps_per_s, 0),
        "-" if line.seconds_mean is None else clock(line.seconds_mean),
        clock(line.seconds_sum),
    ]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _missing(now: TrialStatus) -> str:
    how = f"{now.trial.status}, {now.describe()}" if now.rows else now.trial.status
    return f"{how}: {now.reason.splitlines()[0]}" if now.reason else how


def write_report(sweep: Sweep, statuses: Sequence[TrialStatus], study: Study) -> str:
    """Writes the files of the report.

    Args:
        sweep: The sweep.
        statuses: Its trials, by number, at least one.
        study: The same as Optuna has them.

    Returns:
        The text table.

    Raises:
        UserError: The files cannot be written there.
        DiskError: The disk is full or broken.
    """
    from matplotlib import rc_context  # imported here, as it takes a third of a second

    tables, grid = tables_of(sweep, statuses), sweep.settings.search == "grid"
    text = text_of(sweep, statuses, tables)
    files = {"table.txt": text.encode(), "runs.csv": _csv(run_row(now, sweep.space) for now in statuses)}
    computed: dict[str, Sequence[Line | Aggregate | Improvement]] = {
        "table": tables.lines,
        "aggregates": tables.aggregates,
        "improvement": tables.improvements,
    }
    files |= {f"{name}.csv": _csv(each.row() for each in found) for name, found in computed.items() if found}
    try:
        for name, data in files.items():
            write_atomically(sweep.out / name, data)
        # Last, so that the tables are there even if this fails.
        figures = {name: draw_curves(statuses, axis) for axis, name in AXES.items()} if grid else search_figures(study)
        if sweep.scales:
            figures["profiles"] = draw_profiles(statuses, sweep.scales)
        with rc_context({} if grid else {"savefig.bbox": "tight"}):  # labels of Optuna's plots are outside
            for title, figure in figures.items():
                for name, data in figure_files(figure, title).items():
                    write_atomically(sweep.out / name, data)
    except OSError as error:
        raise cannot_write(f"the report into {sweep.out}", error) from error
    return text


def _csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
