"""Report the results of a sweep.

table.md, table.csv                the trials, the best first: values, metric, test of the elite, how far they came
curves.png, curves.pdf             the metric of every trial against steps
parallel.png, parallel.pdf         parallel coordinates of values and metric
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuroevo.analysis.curves import figure_files
from neuroevo.core.errors import cannot_write
from neuroevo.sweeps.tune.plots import draw_curves, draw_parallel
from neuroevo.sweeps.tune.space import Space, value_text
from neuroevo.sweeps.tune.status import TrialStatus
from neuroevo.system.files import write_atomically


def trial_row(now: TrialStatus, space: Space) -> dict[str, Any]:
    """Returns a trial as plain values, with None for a value that is not known.

    Args:
        now: The trial.
        space: The keys that differ between trials.

    Returns:
        The row of table.csv.
    """
    test = now.test
    return {
        "trial": now.trial.number,
        **{key: now.trial.values.get(key) for key in space},
        now.metric: now.value,
        "test_mean": test.mean,
        "test_standard_error": test.standard_error,
        "test_low95": test.low,
        "test_high95": test.high,
        "test_episodes": test.n or None,
        "generations": now.generations,
        "steps": now.steps,
        "status": now.trial.status,
        "seed": now.trial.values.get("training.seed"),
        "folder": now.trial.folder,
    }


def table(ranked: Sequence[TrialStatus], space: Space) -> str:
    """Formats the trials as a table in Markdown that can also be read as it is.

    Args:
        ranked: The trials, the best first.
        space: The keys that differ between trials.

    Returns:
        The table, with an explanation and the failures below it.
    """
    metric = ranked[0].metric if ranked else "metric"
    head = ["trial", *space, metric, "test mean", "95% interval", "generations", "steps", "status"]
    rows = [head, *(_cells(now, space) for now in ranked)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    lines += [
        "",
        f"{metric} is of a trial's last generation; test mean and 95% interval (Student's t) are of the newest elite",
        "that has played its test episodes. The best of many trials is partly lucky; compare it again.",
    ]
    failed = [now for now in ranked if now.reason]
    lines += ["", *(f"- {now.trial.name}: {now.reason}" for now in failed)] if failed else []
    return "\n".join(lines) + "\n"


def write_report(ranked: Sequence[TrialStatus], space: Space, out: Path) -> str:
    """Writes the files of the report.

    Args:
        ranked: The trials, the best first.
        space: The keys that differ between trials.
        out: The sweep's folder.

    Returns:
        The table.

    Raises:
        UserError: The files cannot be written there.
        DiskError: The disk is full or broken.
    """
    text = table(ranked, space)
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / "table.md", text.encode())
        write_atomically(out / "table.csv", _csv([trial_row(now, space) for now in ranked]))
        files = {**figure_files(draw_curves(ranked)), **figure_files(draw_parallel(ranked, space), "parallel")}
        for name, data in files.items():  # last, so that the tables are there even if this fails
            write_atomically(out / name, data)
    except OSError as error:
        raise cannot_write(f"the report into {out}", error) from error
    return text


def _cells(now: TrialStatus, space: Space) -> list[str]:
    test = now.test
    interval = "-" if test.low is None else f"{test.low:,.2f} to {test.high:,.2f}"
    return [
        str(now.trial.number),
        *(value_text(now.trial.values.get(key)) for key in space),
        _number(now.value),
        _number(test.mean),
        interval,
        str(now.generations),
        "-" if now.steps is None else f"{now.steps:,}",
        now.trial.status,
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
