"""Report the results of a suite: a table as text and CSV, a row per run as CSV, and learning curves.

table.txt, table.csv      a row per game and configuration: scores over seeds
runs.csv                  a row per run
curves.png, curves.pdf    see learning_curves

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

from neuroevo.core.errors import cannot_write
from neuroevo.sweeps.learning_curves import draw, figure_files
from neuroevo.sweeps.status import RunStatus, describe, score, score_of
from neuroevo.system.console import clock
from neuroevo.system.files import write_atomically
from neuroevo.system.statistics import Summary, summarize


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
    return Line(
        game=game,
        config=config,
        runs=len(statuses),
        finished=sum(each.status == "finished" for each in statuses),
        score_of=score_of(statuses[0].run),
        score=summarize(np.array([score(each.played[-1], each.run) for each in played], np.float64)),
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


def text_table(statuses: Sequence[RunStatus]) -> str:
    """Formats the table as text, with an explanation of its columns and a list of the unfinished runs below it."""
    head = ["game", "config", "seeds", "finished", "score", "std. error", "95% interval", "score of", "gens", "frames"]
    rows = [[*head, "time/run", "time in all"], *(_cells(line) for line in lines(statuses))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = [
        "  ".join(cell.ljust(width) if at < 2 else cell.rjust(width) for at, (cell, width) in enumerate(pairs))
        for pairs in (zip(row, widths, strict=True) for row in rows)
    ]
    text.insert(1, "-" * len(text[0]))
    text += [
        "",
        "score: mean return of a run's last elite in its test episodes, or, where there are none, in its validation",
        "episodes, by which it was chosen. Mean over seeds, its standard error and Student's t interval. gens, frames",
        "(of population and validation episodes) and time/run are means over the same runs.",
    ]
    missing = [f"  {each.run.name}: {_missing(each)}" for each in statuses if each.status != "finished"]
    if missing:
        text += ["", f"{len(missing)} of {len(statuses)} runs are not finished:", *missing]
    return "\n".join(line.rstrip() for line in text) + "\n"


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


def write_report(statuses: Sequence[RunStatus], out: Path) -> str:
    """Writes the files of the report.

    Args:
        statuses: The state of every run of the suite, in the order of the suite.
        out: The folder to write to, which is made if it is missing.

    Returns:
        The text table.

    Raises:
        UserError: The files cannot be written there.
        DiskError: The disk is full or broken.
    """
    text = text_table(statuses)
    files = {
        "table.txt": text.encode(),
        "table.csv": _csv(line.row() for line in lines(statuses)),
        "runs.csv": _csv(map(run_row, statuses)),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_atomically(out / name, data)
        for name, data in figure_files(draw(statuses)).items():  # last, so that the tables are there even if this fails
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
