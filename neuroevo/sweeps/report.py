"""Report the results of a suite: a table as text and CSV, a row per run as CSV, and learning curves.

table.txt, table.csv      a row per game and configuration: scores over seeds; in the text also over all games
aggregates.csv            a row per configuration: normalized scores over all games, where the suite says how
runs.csv                  a row per run
curves.png, curves.pdf    learning curves against frames (analysis/curves), and curves_time.* against wall time

A run that is not finished counts with the generations it has; the text table names these runs at its end.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.analysis.curves import XAxis, figure_files
from neuroevo.core.errors import cannot_write
from neuroevo.sweeps.aggregates import NO_SCALES, Scales, aggregates, last_scores
from neuroevo.sweeps.learning_curves import draw_suite
from neuroevo.sweeps.status import RunStatus, describe, score, score_of
from neuroevo.system.console import clock
from neuroevo.system.files import write_atomically
from neuroevo.system.statistics import Summary, interquartile_mean, summarize

AXES: dict[XAxis, str] = {"frames": "curves", "time": "curves_time"}
"""What the learning curves are drawn against, and what the files are called."""
_FIGURES = [f"{name}.{kind}" for name in AXES.values() for kind in ("png", "pdf")]
FILES = ("table.txt", "table.csv", "runs.csv", "aggregates.csv", *_FIGURES)
"""All that a report may write."""


@dataclass(frozen=True)
class Line:
    """The results of one configuration on one game. Means and sums are over the `score.n` runs that have a score.

    Attributes:
        game: Name of the environment.
        config: Label of the configuration.
        runs: The number of runs in the suite, one per seed.
        finished: The number of them that are finished.
        score_of: The episodes that scores are from, "test" or "validation".
        score: Mean, standard error and 95% confidence interval of the scores of the runs' last elites.
        iqm: Interquartile mean of these scores with its bootstrap interval.
        generations_mean: Mean number of finished generations; None if no run has a score, like the other means.
        frames_mean: Mean number of frames of population and validation episodes.
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
            "seconds_mean": self.seconds_mean,
            "seconds_sum": self.seconds_sum,
        }


def lines(statuses: Sequence[RunStatus]) -> list[Line]:
    """Returns the lines of the table, one per game and configuration, in the order of the suite."""
    groups: dict[tuple[str, str], list[RunStatus]] = {}
    for each in statuses:
        groups.setdefault((each.run.game, each.run.label), []).append(each)
    return [_line(game, config, of) for (game, config), of in groups.items()]


def _line(game: str, config: str, statuses: Sequence[RunStatus]) -> Line:
    played = [each for each in statuses if each.played]
    last = [each.rows[-1] for each in played]

    def mean(key: str) -> float | None:
        return float(np.mean([row[key] for row in last])) if last else None

    generations = mean("generation")
    scores = last_scores(statuses)
    return Line(
        game=game,
        config=config,
        runs=len(statuses),
        finished=sum(each.status == "finished" for each in statuses),
        score_of=score_of(statuses[0].run),
        score=summarize(scores),
        iqm=interquartile_mean([scores]),
        generations_mean=None if generations is None else generations + 1,
        frames_mean=mean("frames_total"),
        seconds_mean=mean("seconds_total"),
        seconds_sum=round(sum(row["seconds_total"] for row in last), 3),
    )


def run_row(now: RunStatus) -> dict[str, Any]:
    """Returns a run as plain values, with None for a value that is not known."""
    last = now.rows[-1] if now.rows else {}
    scored = now.played[-1] if now.played else {}
    return {
        "game": now.run.game,
        "config": now.run.label,
        "seed": now.run.seed,
        "status": now.status,
        "score_of": score_of(now.run),
        "score": score(scored, now.run) if scored else None,
        "generations": len(now.rows),
        "frames": last.get("frames_total"),
        "seconds": last.get("seconds_total"),
        "folder": str(now.run.folder),
    }


def text_table(statuses: Sequence[RunStatus], scales: Scales = NO_SCALES) -> str:
    """Formats the table as text, with an explanation of its columns and a list of the unfinished runs below it.

    Args:
        statuses: The runs of a suite.
        scales: As aggregates() takes them.
    """
    head = ["game", "config", "seeds", "finished", "score", "std. error", "95% interval", "IQM", "95% interval"]
    head += ["score of", "gens", "frames", "time/run", "time in all"]
    text = _aligned([head, *(_cells(line) for line in lines(statuses))], left=2)
    text += [
        "",
        "score: mean return of a run's last elite in its test episodes, or, where there are none, in its validation",
        "episodes, by which it was chosen. Mean over seeds, its standard error and Student's t interval; IQM: mean of",
        "the middle half of the seeds, with a bootstrap interval. gens, frames (of population and validation episodes)",
        "and time/run are means over the same runs.",
    ]
    if together := aggregates(statuses, scales):
        cells = [[each.config, str(each.games), str(each.iqm.n), *_iqm(each.iqm, 3)] for each in together]
        text += ["", *_aligned([["all games", "games", "runs", "IQM", "95% interval"], *cells], left=1)]
        text += ["", "Scores of each game normalized as the suite says; the interval is stratified by game."]
    missing = [f"  {each.run.name}: {_missing(each)}" for each in statuses if each.status != "finished"]
    if missing:
        text += ["", f"{len(missing)} of {len(statuses)} runs are not finished:", *missing]
    return "\n".join(line.rstrip() for line in text) + "\n"


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
        "-" if line.seconds_mean is None else clock(line.seconds_mean),
        clock(line.seconds_sum),
    ]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _missing(now: RunStatus) -> str:
    if now.status == "unusable":
        return now.reason
    return f"unfinished, {describe(now.run, now.rows[-1])}" if now.rows else "not started"


def write_report(statuses: Sequence[RunStatus], out: Path, scales: Scales = NO_SCALES) -> str:
    """Writes the files of the report.

    Args:
        statuses: The state of every run of the suite, in the order of the suite.
        out: The folder to write to, which is made if it is missing.
        scales: As aggregates() takes them.

    Returns:
        The text table.

    Raises:
        UserError: The files cannot be written there.
        DiskError: The disk is full or broken.
    """
    text = text_table(statuses, scales)
    files = {
        "table.txt": text.encode(),
        "table.csv": _csv(line.row() for line in lines(statuses)),
        "runs.csv": _csv(map(run_row, statuses)),
    }
    if scales:
        files["aggregates.csv"] = _csv(each.row() for each in aggregates(statuses, scales))
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_atomically(out / name, data)
        for axis, figure in AXES.items():  # last, so that the tables are there even if this fails
            for name, data in figure_files(draw_suite(statuses, axis), figure).items():
                write_atomically(out / name, data)
    except OSError as error:
        raise cannot_write(f"the report into {out}", error) from error
    return text


def _csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
