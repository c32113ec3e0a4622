"""Running a sweep: trials in processes, failures, and continuing after the sweep was stopped or killed."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.sessions.folder import RunFolder
from neuroevo.sweeps import driver
from neuroevo.sweeps.driver import run_sweep
from neuroevo.sweeps.report import write_report
from neuroevo.sweeps.status import status_of
from neuroevo.sweeps.study import Study
from tests.support.databases import change, info_of, query
from tests.support.inline import InlineToys
from tests.support.runs import checkpoints_of, count_rows, play, read_rows, results
from tests.support.sweeps import GA, TOY_CHILD, Listener, load, run_toy_processes, run_toys, table, write

ROOT = Path(__file__).parents[2]
LONG = 'configs = ["ga.toml"]\nseeds = 3\nparallel = 2\nset = ["training.generations=8"]\n'
ONE = 'configs = ["ga.toml"]\n'


def processes(folder):
    """Return the ids of the processes that train into the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile
            command = path.read_bytes()
            if b"--resume" in command and str(folder).encode() in command:
                found.append(int(path.parent.name))
    return found


def folders(sweep):
    return [sweep.out / trial.folder for trial in sweep.points]


def printed(folder):
    return folder.with_name(f"{folder.name}.out").read_text()


def statuses(trials):
    return {trial.seed: trial.status for trial in trials}


def test_a_grid_equals_single_runs(tmp_path):
    """Folders of trials by game and by value of a key."""
    text = 'configs = ["rs.toml"]\ngames = ["frostbite", "pong"]\nseeds = [7]\nparallel = 3'
    sweep = load(tmp_path, text, '"algorithm.validation_candidates" = [2, 3]')
    listener, trials = run_toy_processes(sweep)
    assert [trial.status for trial in trials] == ["finished"] * 4
    assert (listener.total, listener.parallel, listener.most) == (4, 3, 3)
    assert listener.before == dict.fromkeys(range(4), "waiting")
    assert [event for event in listener.events if event[0] == "started"] == [("started", each) for each in range(4)]
    found = []
    for trial in trials:
        folder, config = sweep.out / trial.folder, sweep.config(trial)
        stored = load_config(folder / "config.toml")
        assert (trial.label, trial.game, trial.seed) == (folder.parts[-4], folder.parts[-3], stored.training.seed)
        assert stored.algorithm.validation_candidates == trial.values["algorithm.validation_candidates"]
        assert stored.origin() == config.origin() and stored.hardware.threads == max(os.cpu_count() // 3, 1)
        assert info_of(folder)["command"].startswith("neuroevo train ")
        assert printed(folder).splitlines()[-1].startswith("finished after 3 generations")
        own = tmp_path / "own" / trial.folder
        own.parent.mkdir(parents=True, exist_ok=True)
        play(RunFolder.create(own, config))
        assert results(folder) == results(own)
        row = {key: value for key, value in read_rows(folder)[-1].items() if key != "fitness"}
        assert listener.rows[trial.number][-1] == row
        found.append(str(read_rows(folder)))
    assert len(set(found)) == 4


def test_a_finished_trial_is_left_alone_and_a_budget_that_has_grown_goes_on(tmp_path):
    sweep = load(tmp_path, ONE)
    run_toys(sweep)
    (folder,) = folders(sweep)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    listener, trials = run_toys(sweep)
    assert (listener.before, listener.events) == ({0: "finished"}, [])
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before

    longer = load(tmp_path, ONE, overrides=["training.generations=5"])
    listener, _ = run_toys(longer)
    assert (listener.before, listener.events) == ({0: "waiting"}, [("started", 0), ("finished", 0)])
    assert listener.resumed == {0: True} and [row["generation"] for row in read_rows(folder)] == [0, 1, 2, 3, 4]
    assert info_of(folder)["resumed"][-1]["generation"] == 3
    assert [each.user_attrs["number"] for each in Study(sweep.out).study.get_trials()] == [0, 0]


def test_another_sweep_in_the_folder_is_refused_with_what_differs(tmp_path):
    sweep = load(tmp_path, ONE)
    run_toys(sweep)
    for changes, keys in (
        (dict(text=ONE + 'search = "random"\ntrials = 2'), ["sweep.space", "sweep.search", "sweep.budgets"]),
        (dict(text=ONE + 'metric = "fitness_max"'), ["sweep.metric"]),
        (dict(text=ONE, overrides=["algorithm.sigma=0.5"]), ["sweep.configs"]),
    ):
        with pytest.raises(ConfigError) as caught:
            run_toys(load(tmp_path, **changes))
        assert [problem.key for problem in caught.value.problems] == keys
        assert f"the sweep in {sweep.out} was begun with" in str(caught.value)
    assert run_toys(load(tmp_path, ONE + "parallel = 2", overrides=["training.minutes=60"]))[0].before == {
        0: "finished"
    }


def test_a_search_keeps_its_configuration(tmp_path):
    """For each implementation; a grid may continue with other configurations."""
    text = 'search = "random"\ntrials = 2\n'
    run_toys(load(tmp_path, text))
    for other in ('configs = ["ga.toml"]\n', 'implementations = ["tests.support.implementation:made_up"]\n'):
        with pytest.raises(
            ConfigError, match="was begun with pendulum/gymnasium:Pendulum-v1; expected the same"
        ) as caught:
            run_toys(load(tmp_path, text + other))
        assert [problem.key for problem in caught.value.problems] == ["sweep.configs"]


def test_what_kills_have_left_is_cleared_away(tmp_path):
    """Temporary files of the sweep, and a run that had stored its last state but had not finished."""
    sweep = load(tmp_path, 'configs = ["ga.toml", "rs.toml"]')
    run_toys(sweep)
    study = Study(sweep.out)
    write_report(sweep, [status_of(sweep, trial) for trial in study.trials()], study)
    first, second = folders(sweep)
    (first.parent / ".seed-0.toml.7.tmp").write_text("half")
    for name in ("runs.csv", "curves.pdf"):
        (sweep.out / f".{name}.7.tmp").write_text("half")
    (sweep.out / ".notes.7.tmp").write_text("another user's")
    change(second, "UPDATE sessions SET ended = 0")
    for each in study.study.get_trials():  # as if the driver was killed before it noted the second one's end
        if each.user_attrs["number"] == 1:
            study.study.add_trial(waiting(each))
    listener, trials = run_toys(sweep)
    assert listener.before == {0: "finished", 1: "waiting"}
    assert listener.events == [("started", 1), ("finished", 1)]
    assert [file.name for file in tmp_path.rglob(".*")] == [".notes.7.tmp"]
    assert query(second, "SELECT ended FROM sessions") == [(0,), (1,)]
    assert checkpoints_of(second)[-1] == 3
    assert run_toys(sweep)[0].events == []


def waiting(frozen):
    import optuna

    return optuna.trial.create_trial(state=optuna.trial.TrialState.WAITING, user_attrs=frozen.user_attrs)


def test_a_trial_that_fails_does_not_stop_the_others_and_is_started_again(tmp_path):
    sweep = load(tmp_path, 'configs = ["ga.toml"]\nseeds = [13, 1, 2]\nparallel = 2')
    other = sweep.out / "ga" / "frostbite" / "seed-1"
    other.parent.mkdir(parents=True)
    play(RunFolder.create(other, load_config(tmp_path / "ga.toml", ["training.seed=1", "algorithm.sigma=0.5"])))
    listener, trials = run_toy_processes(sweep)
    assert statuses(trials) == {13: "failed", 1: "failed", 2: "finished"}
    assert set(listener.events) >= {("failed", 0), ("failed", 1), ("finished", 2)}
    reasons = {trial.seed: trial.reason.splitlines() for trial in trials}
    assert reasons[13][0] == "ended with exit code 1" and len(reasons[13]) == 5
    assert "ValueError: fitness of genome 2 is nan" in reasons[13][-1]
    assert reasons[1] == [
        "ended with exit code 2",
        "neuroevo: algorithm.sigma is 0.5 and cannot become 0.002 when a run is resumed; "
        "allowed changes: total_steps, generations, minutes, target of [training], [hardware], [cluster], "
        "[checkpoints], [logging], emulator of [env.options]",
    ]
    assert [bool(status_of(sweep, trial).reason) for trial in trials] == [True, True, False]
    again = run_toy_processes(sweep)[1]  # the output of the first attempt is not reported again
    assert statuses(again) == statuses(trials) and again[1].reason == trials[1].reason
    shutil.rmtree(other)
    listener, trials = run_toy_processes(sweep)
    assert [trial.status for trial in trials] == ["finished"] * 3  # the third attempt of seed 13 has little to play
    assert [trial.number for trial in trials] == [0, 1, 2]
    assert {number for kind, number in listener.events if kind == "started"} == {0, 1}
    assert [row["generation"] for row in read_rows(sweep.out / trials[0].folder)] == [0, 1, 2]
    assert all(again["generation"] > 0 for again in info_of(sweep.out / trials[0].folder)["resumed"])


class Killer(Listener):
    """Kill each trial's process that has finished a generation, this number of times."""

    def __init__(self, folder, times):
        super().__init__()
        self.folder, self.times, self.killed_at = folder, times, []

    def tick(self):
        found = processes(self.folder)
        rows = sum(count_rows(path.parent) for path in self.folder.rglob("run.db"))
        if self.times and found and rows > sum(self.killed_at[-1:]):
            self.times -= 1
            self.killed_at.append(rows)
            os.kill(found[0], signal.SIGKILL)


def test_a_trial_whose_process_is_killed_goes_on_from_its_newest_state(tmp_path, monkeypatch):
    """It is restarted three times; then it has failed until the command is repeated."""
    monkeypatch.setenv("TOY_SECONDS", "0.1")
    sweep = load(tmp_path, ONE + 'set = ["training.generations=12"]')
    killer = Killer(sweep.out, 4)
    (trial,) = run_sweep(sweep, killer, program=TOY_CHILD)
    (folder,) = folders(sweep)
    assert (trial.status, killer.times) == ("failed", 0)
    assert killer.events == [("started", 0)] * 4 + [("failed", 0)]
    assert trial.reason.splitlines()[0] == "was killed by SIGKILL" and count_rows(folder) < 12
    (trial,) = run_toys(sweep)[1]
    assert trial.status == "finished"
    again = [each["generation"] for each in info_of(folder)["resumed"]]
    assert len(again) == 4 and all(found >= least > 0 for found, least in zip(again, killer.killed_at, strict=True))
    play(RunFolder.create(tmp_path / "whole", sweep.config(trial)))
    assert results(folder) == results(tmp_path / "whole")


def test_what_stops_a_trial_at_its_start_is_known_before_the_first_one(tmp_path):
    """An invalid option of a game, and a missing run to start from, unless it is one of the sweep's own runs."""
    absent, own = tmp_path / "absent", tmp_path / "out" / "ga" / "frostbite" / "seed-0"
    other = GA.replace("generations = 3", 'generations = 3\nstart_from = "{}"')
    (tmp_path / "from_absent.toml").write_text(other.format(absent))
    (tmp_path / "from_own.toml").write_text(other.format(own))
    games = 'configs = ["ga.toml", "from_absent.toml", "from_own.toml"]\ngames = ["frostbite", "pong"]\nseeds = 2'
    sweep = load(tmp_path, games, overrides=["env.options.mode=2"])
    listener = Listener()
    with pytest.raises(UserError) as caught:
        run_sweep(sweep, listener, program=TOY_CHILD)
    assert str(caught.value).splitlines() == [
        f"2 problems in {sweep.out}:",
        f'  training.start_from = "{absent}": there is no run in {absent}: expected {absent / "run.db"}',
        "  pong cannot be made: atari option mode is 2, which pong does not support; expected one of: 0, 1",
    ]
    assert listener.events == [] and [path.name for path in sweep.out.iterdir()] == ["sweep.db"]
    shutil.rmtree(sweep.out)
    text = 'configs = ["ga.toml", "from_own.toml"]\n'
    assert {trial.status for trial in run_toys(load(tmp_path, text))[1]} == {"finished"}


def test_what_an_emulator_refuses_of_a_search_is_known_before_the_first_trial(tmp_path):
    text = 'configs = "ga.toml"\nsearch = "random"\ntrials = 2\nset = ["env.name=pong"]'
    sweep, listener = load(tmp_path, text, '"env.options.mode" = [0, 2]'), Listener()
    with pytest.raises(UserError, match="pong cannot be made: atari option mode is 2"):
        run_sweep(sweep, listener, program=TOY_CHILD)
    assert listener.events == [] and Study(sweep.out).trials() == []


def test_the_sweeps_files_must_be_writable(tmp_path):
    sweep = load(tmp_path, ONE)
    sweep.out.write_text("")
    with pytest.raises(UserError, match=f"{sweep.out} is a file"):
        run_toys(sweep)
    below = replace(sweep, out=sweep.out / "below")
    with pytest.raises(UserError, match=f"{below.out}: Not a directory"):
        run_toys(below)


def test_a_trial_that_cannot_be_started_does_not_stop_the_others(tmp_path):
    sweep = load(tmp_path, 'configs = ["ga.toml", "rs.toml"]')
    sweep.out.mkdir()
    (sweep.out / "ga").write_text("")
    listener, trials = run_toy_processes(sweep)
    assert [trial.status for trial in trials] == ["failed", "finished"]
    where = sweep.out / "ga" / "frostbite"
    reasons = [f"could not be started: {why} ({where})" for why in ("Not a directory", "File exists")]
    assert trials[0].reason in reasons and ("started", 0) not in listener.events
    (sweep.out / "ga").unlink()
    assert {trial.status for trial in run_toy_processes(sweep)[1]} == {"finished"}


def start(file, seconds):
    """Start `neuroevo sweep FILE` in a separate process, with children that sleep in each phase."""
    program = (
        "import functools, sys; from neuroevo import cli; from neuroevo.sweeps import driver\n"
        f"driver.run_sweep = functools.partial(driver.run_sweep, program={TOY_CHILD!r})\n"
        f"sys.argv = ['neuroevo', 'sweep', {str(file)!r}, '--out', {str(file.parent / 'out')!r}]\n"
        "cli.main()\n"
    )
    environment = {**os.environ, "TOY_SECONDS": str(seconds)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment, **streams)


def wait_for(condition, process, seconds=300):
    """Wait until the condition holds, while the process runs."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def tables(folder):
    """Return the report's tables without clocks and folders."""
    without = ("seconds", "steps_per_s", "folder")
    return table(folder / "table.csv", without), table(folder / "runs.csv", without)


STOPS = {  # the exit code, and what is printed
    signal.SIGTERM: (143, "neuroevo: terminated; to resume: neuroevo sweep "),
    signal.SIGKILL: (-signal.SIGKILL, ""),
}


@pytest.mark.slow
def test_a_sweep_that_is_stopped_goes_on_to_the_same_results(tmp_path, monkeypatch):
    """Stop the sweep by one signal after another, each after further generations; then let it finish."""
    sweep = load(tmp_path, LONG)
    file, before = tmp_path / "sweep.toml", 0

    def generations():
        return sum(count_rows(path) for path in folders(sweep))

    for sent, (code, expected) in STOPS.items():
        process = start(file, seconds=0.1)
        wait_for(lambda: generations() >= before + 2, process)  # noqa: B023
        process.send_signal(sent)
        stdout, stderr = process.communicate(timeout=30)
        assert process.returncode == code
        assert stderr.startswith(expected) and bool(stderr) == bool(expected)
        if sent != signal.SIGKILL:
            assert processes(tmp_path) == []
        wait = time.monotonic() + 10  # without a sweep its trials end by themselves, long before they are finished
        while processes(tmp_path) and time.monotonic() < wait:
            time.sleep(0.05)
        assert processes(tmp_path) == []
        assert {trial.status for trial in Study(sweep.out).trials()} == {"running", "waiting"}
        before = generations()

    monkeypatch.setattr(driver, "_POLL_SECONDS", 0)
    monkeypatch.setattr(driver, "Processes", InlineToys)
    done = CliRunner().invoke(app, ["sweep", str(file), "--out", str(sweep.out)])
    assert (done.exit_code, done.stderr) == (0, "")
    (tmp_path / "whole").mkdir()
    whole = load(tmp_path / "whole", LONG)
    trials = run_toys(whole)[1]
    write_report(whole, [status_of(whole, trial) for trial in trials], Study(whole.out))
    assert tables(sweep.out) == tables(whole.out)
    for folder, reference in zip(folders(sweep), folders(whole), strict=True):
        assert results(folder) == results(reference)
    assert any(info_of(folder)["resumed"] for folder in folders(sweep))


def test_two_sweeps_cannot_run_in_one_folder(tmp_path, monkeypatch):
    sweep = load(tmp_path, ONE)
    process = start(tmp_path / "sweep.toml", seconds=30)
    try:
        wait_for(lambda: processes(tmp_path), process)
        monkeypatch.setattr(driver, "LOCK_SECONDS", 0.5)
        with pytest.raises(UserError, match=f"another sweep .*{sweep.out}"):
            run_toys(sweep)
        (trial,) = Study(sweep.out).trials()  # looking needs no lock
        assert trial.status == "running" and status_of(sweep, trial).rows == []
    finally:
        process.send_signal(signal.SIGINT)
        stderr = process.communicate(timeout=30)[1]
        assert process.returncode == 130
        assert stderr.startswith("neuroevo: interrupted; to resume: neuroevo sweep ")


def test_failures_are_listed_under_the_table(tmp_path, monkeypatch):
    file = write(tmp_path, 'configs = ["ga.toml"]\nseeds = [13, 0]\nparallel = 2')
    monkeypatch.setattr(driver, "run_sweep", partial(driver.run_sweep, program=TOY_CHILD))
    done = CliRunner().invoke(app, ["sweep", str(file), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == f"this table, CSV files and figures are in {tmp_path / 'out'}"
    output = printed(tmp_path / "out" / "ga" / "frostbite" / "seed-13").splitlines()
    first, second, *last = done.stderr.splitlines()
    assert first == "neuroevo: 1 of 2 trials failed:"
    assert second == "  ga/frostbite/seed-13 ended with exit code 1; the last lines of its output:"
    assert last == [f"    {line}" for line in output if line.strip()][-5:]
    assert "ValueError: fitness of genome 2 is nan" in last[-1]


@pytest.mark.slow
def test_real_trials_from_the_command_to_the_table(tmp_path):
    """The command on Frostbite, with two concurrent seeds."""
    text = ONE + 'seeds = 2\nparallel = 2\nset = ["training.generations=2", "training.test_episodes=0"]'
    file = write(tmp_path, text)
    words = ["sweep", str(file), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stderr) == (0, "")
    rows = table(tmp_path / "out" / "table.csv", without=())
    assert [(row["game"], row["config"], row["seeds"]) for row in rows] == [("frostbite", "ga", "2")]
    for row in rows:
        last = []
        for seed in (0, 1):
            last.append(read_rows(tmp_path / "out" / row["config"] / "frostbite" / f"seed-{seed}")[1])
        a, b = (each["validation_mean"] for each in last)
        assert float(row["score_mean"]) == (a + b) / 2
        assert float(row["score_standard_error"]) == pytest.approx(abs(a - b) / 2)
        assert float(row["frames_mean"]) == sum(each["frames_total"] for each in last) / 2 > 0
        assert float(row["seconds_sum"]) == pytest.approx(sum(each["seconds_total"] for each in last), abs=0.002)
    assert CliRunner().invoke(app, words).exit_code == 0
    assert table(tmp_path / "out" / "table.csv", without=()) == rows
    assert {path.name for path in (tmp_path / "out").iterdir() if path.is_file()} == {
        "sweep.db", "table.txt", "table.csv", "runs.csv",
        "curves.png", "curves.pdf", "curves_time.png", "curves_time.pdf",
    }  # fmt: skip
