"""Display of a run: lines, a table that fits the terminal, the time left, and a resumed run's last rows."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from neuroevo.config.schema import Training
from neuroevo.core.genome import Genome
from neuroevo.sessions.generation_table import GenerationTable
from neuroevo.sessions.progress import PlainProgress, TerminalProgress
from neuroevo.training.record import EvaluationRecord, PhaseRecord, Record
from neuroevo.training.time_left import TimeLeft
from tests.support.runs import config, new_run

RECORD = Record(
    generation=12, max_episode_steps=5000, elite=Genome(1), fitness=np.array([1.0, 2.0, 6.0]), validation_mean=1234.5,
    population=PhaseRecord(episodes=3, steps=10, seconds=1.0),
    validation=PhaseRecord(episodes=5, steps=20, seconds=0.5),
    test=EvaluationRecord(episodes=0, steps=0, seconds=0.0, mean=None, standard_error=None),
    steps_total=1_234_567, frames_total=4, seconds_total=3725.0, steps_per_s=20.0, idle_share=0.0125,
)  # fmt: skip


def test_a_plain_line(capsys):
    PlainProgress().generation(RECORD)
    assert capsys.readouterr().out == (
        "generation 12: fitness mean 3.0 max 6.0, elite validation 1234.5, steps 1,234,567, 20/s, threads 1.2% idle, "
        "3725.0 s\n"
    )


def test_plain_lines_after_a_minute_of_silence(capsys):
    now = 0.0
    progress = PlainProgress(now=lambda: now)

    def printed(seconds, tell, *what):
        nonlocal now
        now = seconds
        tell(*what)
        return capsys.readouterr().out

    assert printed(10.0, progress.phase, 12, "population", 2000) == ""
    assert printed(59.9, progress.progress, 500, 10_000) == ""
    assert printed(60.0, progress.progress, 500, 10_000) == (
        "  population of generation 12: 500 of 2,000 episodes after 0:00:50, 200 steps/s\n"
    )
    assert printed(119.0, progress.progress, 1500, 60_000) == ""
    assert printed(125.0, progress.generation, RECORD).startswith("generation 12: fitness")
    assert printed(126.0, progress.phase, 13, "validation", 3) == ""
    assert printed(184.9, progress.progress, 0, 0) == ""
    assert printed(185.0, progress.progress, 0, 0) == "  validation of generation 13: 0 of 3 episodes after 0:00:59\n"


def test_a_terminal_table():
    output = io.StringIO()
    with TerminalProgress(Console(file=output, force_terminal=True, width=120, color_system=None)) as progress:
        for _ in range(2):
            progress.phase(12, "population", 100)
            progress.progress(40, 5000)
            progress.generation(RECORD)
    text = output.getvalue()
    assert text.count("valid. ") == 1
    row = ["12", "3.00", "6.00", "1,234.5", "-", "1.235M", "20", "1.2%", "1:02:05"]
    assert sum(line.split() == row for line in text.replace("\x1b[2K", "").splitlines()) == 2


def test_failed_episodes_on_a_terminal():
    output = io.StringIO()
    population = replace(RECORD.population, failures=1, first_failure="action[0] is nan")
    test = replace(RECORD.test, episodes=9, failures=2, first_failure="it exploded")
    failing = replace(RECORD, population=population, test=test)
    with TerminalProgress(Console(file=output, force_terminal=True, width=120, color_system=None)) as progress:
        progress.generation(RECORD)
        progress.generation(failing)
    assert output.getvalue().count("     3 episodes failed, the first: action[0] is nan\n") == 1


def bare(text):
    """Return the output on a terminal without control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("novelty", [False, True])
def test_the_table_fits(width, novelty):
    """Also with large numbers and novelty; the most important columns remain."""
    extra = {"novelty_mean": 12.345, "novelty_max": 99.0} if novelty else {}
    test = EvaluationRecord(episodes=9, steps=9, seconds=0.0, mean=123456.7, standard_error=2345.6)
    record = replace(
        RECORD, generation=1234, fitness=np.array([9e5, -123456.7]), validation_mean=-98765.4, test=test,
        steps_total=987_654_321, steps_per_s=123_456.0, idle_share=0.999, extra_metrics=extra,
    )  # fmt: skip
    lines = GenerationTable().lines(record.row(), width)
    *_, head, row = lines
    assert max(map(len, lines)) <= max(width, 56 if novelty else 48)
    assert head.split()[:3] == (["gen", "novelty", "valid."] if width < 60 and novelty else head.split()[:3])
    assert {"gen", "valid.", "test", "time"} <= set(head.split()) and ("novelty" in head) == novelty
    assert ("idle" in head) == (width == 120 or (width == 80 and not novelty))
    assert {"-98,765", "123,457", "±", "2,346", "1:02:05"} <= set(row.split())
    legend = " ".join(lines[:-2])
    assert "test: mean in test episodes ± standard error" in legend
    assert ("idle: share of the threads' time without work" in legend) == ("idle" in head)


def test_the_header_comes_again():
    table = GenerationTable()
    rows = [replace(RECORD, generation=generation).row() for generation in range(45)]
    lines = [line for row in rows for line in table.lines(row, 80)]
    heads = [index for index, line in enumerate(lines) if line.startswith(" gen")]
    assert [int(lines[head + 1].split()[0]) for head in heads] == [0, 20, 40]


def test_a_resized_terminal_gets_the_columns_that_fit():
    table = GenerationTable()
    table.lines(RECORD.row(), 120)
    head, row = table.lines(RECORD.row(), 50)
    assert head.startswith(" gen") and len(head) == len(row) <= 50
    assert len(table.lines(RECORD.row(), 50)) == len(table.lines(RECORD.row(), 51)) == 1  # the same columns


@pytest.mark.parametrize(("hours", "shown"), [(25, "25:00:05"), (9 * 24, "216:00:05")])
def test_days_in_a_terminal_table(hours, shown):
    *_, row = GenerationTable().lines(replace(RECORD, seconds_total=hours * 3600 + 5.0).row(), 80)
    assert row.split()[-1] == shown
    assert len(row) <= 80


def row(generation, seconds, steps=0):
    return {"generation": generation, "seconds_total": seconds, "steps_total": steps}


def test_the_time_left_is_that_of_the_last_generations():
    left = TimeLeft(Training(generations=100))
    assert left.seconds() is None
    left.add(row(0, 10.0))
    assert left.seconds() == pytest.approx(990)
    for generation in range(1, 50):  # five times as fast since
        left.add(row(generation, 10.0 + 2.0 * generation))
    assert left.seconds() == pytest.approx(50 * 2.0)
    left.add(row(99, 200.0))
    assert left.seconds() == 0.0


def test_the_budget_that_is_spent_first_says_how_long():
    left = TimeLeft(Training(generations=100, total_steps=1000, minutes=60.0))
    left.add(row(9, 60.0, steps=500))
    assert left.seconds() == pytest.approx(60)
    timed = TimeLeft(Training(minutes=2.0, target=5.0))
    timed.add(row(0, 30.0))
    assert timed.seconds() == pytest.approx(90)


def test_lines_say_how_long_the_run_still_takes(tmp_path, capsys):
    progress = PlainProgress()
    progress.begin(config(training={"generations": 26}), tmp_path, 0)
    progress.generation(RECORD)  # half of the generations in 3,725 s
    assert capsys.readouterr().out.endswith(", 3725.0 s; about 1:02:05 left\n")
    progress.generation(replace(RECORD, generation=25))
    assert capsys.readouterr().out.endswith(", 3725.0 s\n")


def test_the_bar_says_how_long_the_run_still_takes(tmp_path):
    output = io.StringIO()
    with TerminalProgress(Console(file=output, force_terminal=True, width=80, color_system=None)) as progress:
        progress.begin(config(training={"generations": 26}), tmp_path, 0)
        progress.generation(RECORD)
        progress.phase(13, "population", 10_000)
        progress.progress(5_000, 10)
    text = bare(output.getvalue())
    assert re.search(r"generation 13 population .* 1:02:0[345] left", text)
    assert max(map(len, re.split(r"[\r\n]+", text.split("generation 13")[1]))) <= 80


@pytest.mark.parametrize("terminal", [False, True])
def test_a_resumed_run_shows_its_last_rows(tmp_path, capsys, terminal):
    new_run(tmp_path / "run", training={"generations": 7})
    capsys.readouterr()
    settings = config(training={"generations": 9})
    if terminal:
        output = io.StringIO()
        with TerminalProgress(Console(file=output, force_terminal=True, width=80, color_system=None)) as progress:
            progress.begin(settings, tmp_path / "run", 7)
        shown = [line.split()[0] for line in bare(output.getvalue()).splitlines() if line.strip()[:1].isdigit()]
    else:
        PlainProgress().begin(settings, tmp_path / "run", 7)
        shown = [line.split()[1].rstrip(":") for line in capsys.readouterr().out.splitlines()]
    assert shown == ["2", "3", "4", "5", "6"]
