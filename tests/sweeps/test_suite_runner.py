"""Running a suite: several processes at a time, failures, and going on after the suite was stopped or killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError
from neuroevo.sweeps import runner
from neuroevo.sweeps.report import write_report
from neuroevo.sweeps.runner import run_suite
from neuroevo.sweeps.status import status_of
from neuroevo.sweeps.suite import load_suite
from tests.support.databases import change, info_of, query
from tests.support.runs import checkpoints_of, read_rows, results
from tests.support.suites import GA, TOY_CHILD, Listener, load, run_toys, table, write

ROOT = Path(__file__).parents[2]
LONG = """
configs = ["ga.toml", "rs.toml"]
seeds = 2
set = ["training.generations=25"]
parallel = 2
"""
FOUR = 'configs = ["ga.toml", "rs.toml"]\nseeds = 2\n'


def processes(folder):
    """Ids of the processes that train into the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            command = path.read_bytes()
            if b"--resume" in command and str(folder).encode() in command:
                found.append(int(path.parent.name))
    return found


def names(suite, kind, *rest):
    return [(kind, run.name, *rest) for run in suite.runs]


def test_every_run_is_a_training_run_of_its_own(tmp_path):
    suite = load(tmp_path, FOUR + "parallel = 3")
    listener, failures = run_toys(suite)
    assert failures == []
    assert (listener.parallel, listener.most, listener.statuses) == (3, 3, ["not started"] * 4)
    assert [event for event in listener.events if event[0] == "started"] == names(suite, "started", 0)
    assert sorted(event for event in listener.events if event[0] == "finished") == sorted(names(suite, "finished", 3))
    threads = []
    for run in suite.runs:
        threads.append(load_config(run.folder / "config.toml").hardware.threads)
        assert load_config(run.folder / "config.toml").origin() == run.config.origin()
        assert info_of(run.folder)["command"].startswith("neuroevo train ")
        assert run.beside(".out").read_text().splitlines()[-1].startswith("finished after 3 generations")
        heard = [row for name, row in listener.rows if name == run.name]
        assert heard[-1] == {k: v for k, v in read_rows(run.folder)[-1].items() if k != "fitness"}
    assert set(threads) <= set(runner.shares(3))


def test_a_finished_run_is_left_alone_and_what_is_new_is_added(tmp_path):
    suite = load(tmp_path, 'configs = ["ga.toml"]')
    run_toys(suite)
    (first,) = suite.runs
    before = {path: path.read_bytes() for path in suite.out.rglob("*") if path.is_file()}
    listener, _ = run_toys(suite)
    assert (listener.statuses, listener.events) == (["finished"], [])
    assert {path: path.read_bytes() for path in suite.out.rglob("*") if path.is_file()} == before

    more = load(tmp_path, 'configs = ["ga.toml"]\nseeds = [4, 0]\ngames = ["pong", "frostbite"]')
    listener, _ = run_toys(more)
    assert listener.statuses == ["not started"] * 3 + ["finished"]
    assert [name for kind, name, _ in listener.events if kind == "started"] == [run.name for run in more.runs[:3]]

    longer = load(tmp_path, 'configs = ["ga.toml"]', overrides=["training.generations=5"])
    listener, _ = run_toys(longer)
    assert listener.statuses == ["unfinished"]
    assert listener.events == [("started", first.name, 3), ("finished", first.name, 5)]
    assert [row["generation"] for row in read_rows(first.folder)] == [0, 1, 2, 3, 4]


def test_what_kills_have_left_is_cleared_away(tmp_path):
    """Temporary files of the suite's own; and a run that had its last state, but had not come to its end."""
    suite = load(tmp_path, 'configs = ["ga.toml", "rs.toml"]')
    run_toys(suite)
    write_report([status_of(run) for run in suite.runs], suite.out)
    first, second = suite.runs
    (first.folder.parent / ".seed-0.toml.7.tmp").write_text("half")
    for name in ("runs.csv", "curves.pdf"):
        (suite.out / f".{name}.7.tmp").write_text("half")
    (suite.out / ".notes.7.tmp").write_text("somebody else's")
    change(second.folder, "UPDATE sessions SET ended = 0")
    listener, failures = run_toys(suite)
    assert (listener.statuses, failures) == (["finished"] * 2, [])
    assert listener.events == [("started", second.name, 3), ("finished", second.name, 3)]
    assert [file.name for file in tmp_path.rglob(".*")] == [".notes.7.tmp"]
    assert query(second.folder, "SELECT ended FROM sessions") == [(0,), (1,)]
    assert checkpoints_of(second.folder)[-1] == 3
    assert run_toys(suite)[0].events == []


def test_a_run_that_fails_does_not_stop_the_others(tmp_path):
    other = load(tmp_path, 'configs = ["ga.toml"]\nseeds = [1]', overrides=["algorithm.sigma=0.5"])
    assert run_toys(other)[1] == []
    suite = load(tmp_path, 'configs = ["ga.toml"]\nseeds = [0, 13, 1, 2]\nparallel = 2')
    listener, failures = run_toys(suite)
    assert sorted(name for kind, name, _ in listener.events if kind == "finished") == [
        "ga/frostbite/seed-0",
        "ga/frostbite/seed-2",
    ]
    by_seed = {failure.run.seed: failure for failure in failures}
    assert sorted(by_seed) == [1, 13]
    assert by_seed[13].reason == "ended with exit code 1"
    assert "ValueError: fitness of genome 2 is nan" in by_seed[13].output[-1]
    assert by_seed[1].reason == "ended with exit code 2"
    assert by_seed[1].output == [
        "neuroevo: algorithm.sigma is 0.5 and cannot become 0.002 when a run is resumed; "
        "what can: total_steps, generations and minutes of [training], [hardware], [checkpoints], [cluster], "
        "emulator of [env.options]"
    ]
    assert {each.run.seed: each.status for each in map(status_of, suite.runs)} == {
        0: "finished", 13: "unfinished", 1: "unusable", 2: "finished",
    }  # fmt: skip
    listener, failures = run_toys(suite)  # the output of the first attempt is not reported again
    assert [len(failure.output) for failure in failures if failure.run.seed == 1] == [1]


def test_what_stops_a_run_at_its_start_is_known_before_the_first_one(tmp_path):
    """An option that a game refuses, and a run to start from; one of the suite's own may come into being meanwhile."""
    absent, own = tmp_path / "absent", tmp_path / "out" / "ga" / "frostbite" / "seed-0"
    text = 'configs = ["rs.toml", "ga.toml"]\nseeds = 2\nparallel = 2'
    write(tmp_path, text)
    other = GA.replace("generations = 3", 'generations = 3\nstart_from = "{}"')
    (tmp_path / "from_absent.toml").write_text(other.format(absent))
    (tmp_path / "from_own.toml").write_text(other.format(own))
    games = 'configs = ["ga.toml", "from_absent.toml", "from_own.toml"]\ngames = ["frostbite", "pong"]\nseeds = 2'
    suite = load(tmp_path, games, overrides=["env.options.mode=2"])
    listener = Listener()
    with pytest.raises(UserError) as caught:
        run_suite(suite, listener, child=TOY_CHILD)
    assert str(caught.value).splitlines() == [
        f"2 problems in the suite in {suite.out}:",
        f'  training.start_from = "{absent}": there is no run in {absent}: expected {absent / "run.db"}',
        "  pong cannot be made: atari option mode is 2, which pong does not have; expected one of: 0, 1",
    ]
    assert listener.events == [] and list(suite.out.iterdir()) == []
    assert run_toys(load(tmp_path, text))[1] == []
    assert run_toys(load(tmp_path, 'configs = ["from_own.toml"]'))[1] == []
    shutil.rmtree(own)  # what has begun needs it no more
    assert run_toys(load(tmp_path, 'configs = ["from_own.toml"]', overrides=["training.generations=4"]))[1] == []


def test_a_run_that_is_killed_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "30")

    class Killer(Listener):
        def tick(self):
            for pid in processes(tmp_path):
                os.kill(pid, signal.SIGKILL)

    (failure,) = run_suite(load(tmp_path, 'configs = ["ga.toml"]'), Killer(), child=TOY_CHILD)
    assert failure.reason == "was killed by SIGKILL"


def test_the_suites_files_must_be_writable(tmp_path):
    suite = load(tmp_path, 'configs = ["ga.toml"]')
    suite.out.write_text("")
    with pytest.raises(UserError, match=f"{suite.out} is a file"):
        run_toys(suite)
    with pytest.raises(UserError, match=f"report into {suite.out}"):
        write_report([status_of(run) for run in suite.runs], suite.out)
    suite = load_suite(tmp_path / "suite.toml", out=suite.out / "below")
    with pytest.raises(UserError, match=f"{suite.out}: Not a directory"):
        run_toys(suite)


def test_a_run_that_cannot_be_started_does_not_stop_the_others(tmp_path):
    suite = load(tmp_path, FOUR + "parallel = 2")
    suite.out.mkdir()
    (suite.out / "ga").write_text("")
    listener, failures = run_toys(suite)
    assert [failure.run.name for failure in failures] == ["ga/frostbite/seed-0", "ga/frostbite/seed-1"]
    for failure in failures:
        where = suite.out / "ga" / "frostbite"
        assert failure.reason in (
            f"could not be started: {why} ({where})" for why in ("Not a directory", "File exists")
        )
        assert failure.output == []
    finished = sorted(event for event in listener.events if event[0] == "finished")
    assert finished == [("finished", "rs/frostbite/seed-0", 3), ("finished", "rs/frostbite/seed-1", 3)]
    assert ("started", "ga/frostbite/seed-0", 0) not in listener.events


def start(file, seconds):
    """`neuroevo suite FILE` in a process of its own, with children that pretend to play for so long in each phase."""
    program = (
        "import functools, sys; from neuroevo import cli; from neuroevo.sweeps import runner\n"
        f"runner.run_suite = functools.partial(runner.run_suite, child={TOY_CHILD!r})\n"
        f"sys.argv = ['neuroevo', 'suite', {str(file)!r}, '--out', {str(file.parent / 'out')!r}]\n"
        "cli.main()\n"
    )
    environment = {**os.environ, "TOY_SECONDS": str(seconds)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment, **streams)


def wait_for(condition, process, seconds=60):
    """Waits while the process runs, until the condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def tables(folder):
    """The report's tables, without what depends on the clock and the folder."""
    without = ("seconds", "folder")
    return table(folder / "table.csv", without), table(folder / "runs.csv", without)


STOPS = {  # the exit code, and what is printed
    signal.SIGINT: (130, "neuroevo: interrupted; go on with: neuroevo suite "),
    signal.SIGTERM: (143, "neuroevo: terminated; go on with: neuroevo suite "),
    signal.SIGHUP: (129, "neuroevo: hung up; go on with: neuroevo suite "),
    signal.SIGKILL: (-signal.SIGKILL, ""),
}


@pytest.mark.slow
def test_a_suite_that_is_stopped_goes_on_to_the_same_results(tmp_path):
    """By one signal after the other, each once it has finished more generations; then it runs to its end."""
    suite = load(tmp_path, LONG)
    file, before = tmp_path / "suite.toml", 0

    def generations():
        return sum(len(status_of(run).rows) for run in suite.runs)

    for sent, (code, expected) in STOPS.items():
        process = start(file, seconds=0.3)
        wait_for(lambda: generations() >= before + 2, process)  # noqa: B023
        process.send_signal(sent)
        stdout, stderr = process.communicate(timeout=30)
        assert process.returncode == code
        assert stderr.startswith(expected) and bool(stderr) == bool(expected)
        assert ("goes on from generation " in stdout) == bool(before)
        if sent != signal.SIGKILL:
            assert processes(tmp_path) == []
        wait = time.monotonic() + 10  # without a suite its runs end by themselves, long before they are finished
        while processes(tmp_path) and time.monotonic() < wait:
            time.sleep(0.05)
        assert processes(tmp_path) == []
        statuses = {status_of(run).status for run in suite.runs}
        assert "unfinished" in statuses and "finished" not in statuses
        before = generations()

    process = start(file, seconds=0)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (0, "")
    assert "goes on from generation " in stdout
    (tmp_path / "uninterrupted").mkdir()
    uninterrupted = load(tmp_path / "uninterrupted", LONG)
    assert run_toys(uninterrupted)[1] == []
    write_report([status_of(run) for run in uninterrupted.runs], uninterrupted.out)
    assert tables(suite.out) == tables(uninterrupted.out)
    for run, reference in zip(suite.runs, uninterrupted.runs, strict=True):
        assert results(run.folder) == results(reference.folder)


def test_two_suites_cannot_run_in_one_folder(tmp_path, monkeypatch):
    suite = load(tmp_path, 'configs = ["ga.toml"]')
    process = start(tmp_path / "suite.toml", seconds=30)
    try:
        wait_for(lambda: processes(tmp_path), process)
        monkeypatch.setattr(runner, "LOCK_SECONDS", 0.5)
        with pytest.raises(UserError, match=f"another suite .*{suite.out}"):
            run_toys(suite)
        assert status_of(suite.runs[0]).status in ("not started", "unfinished")  # looking needs no lock
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130


def test_failures_are_listed_under_the_table(tmp_path):
    file = write(tmp_path, 'configs = ["ga.toml"]\nseeds = [13, 0]\nparallel = 2')
    process = start(file, seconds=0)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    lines = stdout.splitlines()
    assert lines[0] == "2 runs (2 not started), 2 at a time"
    assert "ga/frostbite/seed-13 ended with exit code 1" in lines
    assert any(line.startswith("ga/frostbite/seed-0 finished: 3 generations, elite test ") for line in lines)
    assert lines[-1] == f"this table, CSV files and learning curves are in {tmp_path / 'out'}"
    output = tmp_path / "out" / "ga" / "frostbite" / "seed-13.out"
    first, second, *last = stderr.splitlines()
    assert first == "neuroevo: 1 of 2 runs failed:"
    assert second == f"  ga/frostbite/seed-13 ended with exit code 1; {output} ends with:"
    assert last == [f"    {line}" for line in output.read_text().splitlines()]
    assert "ValueError: fitness of genome 2 is nan" in last[-1]


@pytest.mark.slow
def test_real_runs_from_the_command_to_the_table(tmp_path):
    """The command, with TensorFlow and Frostbite: two configurations, two seeds, two at a time."""
    file = write(tmp_path, FOUR + 'parallel = 2\nset = ["training.generations=2", "training.test_episodes=0"]')
    command = [sys.executable, "-m", "neuroevo", "suite", str(file), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    rows = table(tmp_path / "out" / "table.csv", without=())
    assert [(row["game"], row["config"], row["seeds"]) for row in rows] == [
        ("frostbite", "ga", "2"),
        ("frostbite", "rs", "2"),
    ]
    for row in rows:
        last = []
        for seed in (0, 1):
            last.append(read_rows(tmp_path / "out" / row["config"] / "frostbite" / f"seed-{seed}")[1])
        a, b = (each["validation_mean"] for each in last)
        assert float(row["score_mean"]) == (a + b) / 2
        assert float(row["score_standard_error"]) == pytest.approx(abs(a - b) / 2)
        assert float(row["frames_mean"]) == sum(each["frames_total"] for each in last) / 2 > 0
        assert float(row["seconds_sum"]) == pytest.approx(sum(each["seconds_total"] for each in last), abs=0.002)
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert again.returncode == 0
    assert again.stdout.splitlines()[0] == "4 runs (4 finished)"
    assert table(tmp_path / "out" / "table.csv", without=()) == rows
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_file()} == {
        "table.txt", "table.csv", "runs.csv", "curves.png", "curves.pdf", "curves_time.png", "curves_time.pdf",
    }  # fmt: skip
