"""A run that is resumed ends as one that was never stopped, and what cannot be resumed says so and stays as it is."""

import fcntl
import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuroevo.cli.common import HungUp, Terminated, sigterm_raises
from neuroevo.config.load import load_config
from neuroevo.config.schema import CheckpointSettings
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.runs.checkpoint import Checkpoint
from neuroevo.runs.checkpoints import Checkpoints
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.genome_json import genome_to_json
from neuroevo.runs.metrics_files import read_elites, read_rows
from neuroevo.runs.reader import RunReader
from tests.support.runs import config, new_run, play, results
from tests.support.toy import ToyEvaluator

ROOT = Path(__file__).parents[2]


@pytest.fixture
def whole(tmp_path):
    """The results of five generations without a stop."""
    new_run(tmp_path / "whole")
    return results(tmp_path / "whole")


def stopped(path, after, **changes):
    """A run of TABLES that was interrupted in the generation after `after` finished ones."""
    with pytest.raises(KeyboardInterrupt):
        new_run(path, ToyEvaluator(interrupt_at=3 * after + 1), **changes)
    return path


RANDOM_SEARCH = {"algorithm": {"name": "random_search", "population": 8, "validation_candidates": 3}}


@pytest.mark.parametrize("changes", [{}, RANDOM_SEARCH], ids=["ga", "random_search"])
@pytest.mark.parametrize("after", range(5))
def test_resumed_at_any_generation(tmp_path, after, changes):
    new_run(tmp_path / "whole", **changes)
    path = stopped(tmp_path / "run", after, **changes)
    assert len(read_rows(path)) == after
    folder = RunFolder.resume(path)
    assert folder.state.generation == after
    play(folder)
    assert results(path) == results(tmp_path / "whole")


def test_an_adaptive_max_episode_steps_and_schedules_go_on(tmp_path):
    sigma = {"type": "LinearSchedule", "initial_p": 0.5, "final_p": 0.1, "schedule": 4, "field": "iteration"}
    changes = {"training": {"max_episode_steps": "adaptive:12,0.5,1.5,28"}, "algorithm": {"sigma": sigma}}
    new_run(tmp_path / "whole", **changes)
    for after in (1, 3):
        play(RunFolder.resume(stopped(tmp_path / f"run{after}", after, **changes)))
        assert results(tmp_path / f"run{after}") == results(tmp_path / "whole")


def test_the_wall_time_goes_on(tmp_path):
    path = stopped(tmp_path / "run", 2)
    before = read_rows(path)[-1]["seconds_total"]
    folder = RunFolder.resume(path)
    assert folder.state.seconds == pytest.approx(before, abs=0.001)
    play(folder)
    assert read_rows(path)[-1]["seconds_total"] > before


def test_budgets_can_grow_and_nothing_else_can_change(tmp_path, whole):
    path = tmp_path / "run"
    new_run(path, training={"generations": 2})
    play(RunFolder.resume(path, ["training.generations=5", "checkpoints.keep_last=1", "hardware.threads=1"]))
    assert results(path) == whole
    assert load_config(path / "config.toml").training.generations == 5
    assert len(list((path / "checkpoints").iterdir())) == 1
    before = contents(path)
    for override, message in [
        ("algorithm.sigma=0.3", "algorithm.sigma is 0.2 and cannot become 0.3 when a run is resumed"),
        ("training.seed=5", "training.seed is 4 and cannot become 5 when a run is resumed"),
        ("env.name=pong", "env.name is frostbite and cannot become pong"),
        ("algorithm.parents=2", "algorithm.parents is 3 and cannot become 2"),
        ("training.generations=0", "training.generations = 0"),
    ]:
        with pytest.raises(UserError, match=message):
            RunFolder.resume(path, [override])
    assert contents(path) == before


def contents(path):
    return {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def test_resuming_a_finished_run_changes_no_result(tmp_path, whole):
    new_run(tmp_path / "run")
    play(RunFolder.resume(tmp_path / "run"))
    assert results(tmp_path / "run") == whole


def test_what_the_folder_tells_about_resuming(tmp_path):
    path = stopped(tmp_path / "run", 2)
    play(RunFolder.resume(path))
    info = json.loads((path / "info.json").read_text())
    assert [again["generation"] for again in info["resumed"]] == [2]
    assert set(info["resumed"][0]) >= {"command", "started", "versions", "git_commit", "machine"}
    with RunFolder.resume(path).open([], {"device": "gpu"}):  # it may be another one than the first time
        pass
    info = json.loads((path / "info.json").read_text())
    assert info["resumed"][1]["device"] == "gpu" and "device" not in info
    log = (path / "log.txt").read_text()
    assert "stopped in generation 2: KeyboardInterrupt()" in log
    assert "from generation 2" in log
    assert log.count("generation 4: fitness mean") == 1


@pytest.mark.parametrize("damaged", ['{"command": ', "[]", "null", '{"resumed": null}'])
def test_a_damaged_info_stops_nothing(tmp_path, damaged):
    path = stopped(tmp_path / "run", 2)
    (path / "info.json").write_text(damaged)
    play(RunFolder.resume(path))
    info = json.loads((path / "info.json").read_text())
    assert [again["generation"] for again in info["resumed"]] == [2]


def test_which_checkpoints_stay(tmp_path):
    new_run(tmp_path / "run", training={"generations": 9}, checkpoints={"keep_last": 2, "keep_every": 3})
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == [f"generation-00000{g}.ckpt" for g in (0, 3, 6, 8, 9)]
    reader = RunReader(tmp_path / "run")
    assert [reader.state(generation).generation for generation in (0, 3, 9)] == [0, 3, 9]
    with pytest.raises(UserError, match=r"generation-000005.ckpt cannot be read: .*with a checkpoint: 0, 3, 6, 8, 9"):
        reader.state(5)


def test_fewer_checkpoints_and_one_when_it_stops(tmp_path, whole):
    path = stopped(tmp_path / "run", 3, checkpoints={"every": 2, "keep_last": 10})
    names = sorted(file.name for file in (path / "checkpoints").iterdir())
    assert names == [f"generation-00000{g}.ckpt" for g in (0, 2, 3)]  # 3: of the interruption
    play(RunFolder.resume(path))
    assert results(path) == whole
    names = sorted(file.name for file in (path / "checkpoints").iterdir())
    assert names == [f"generation-00000{g}.ckpt" for g in (0, 2, 3, 4, 5)]  # 5: of the end


def damage(path, how):
    data = path.read_bytes()
    if how == "truncated":
        path.write_bytes(data[: len(data) // 2])
    elif how == "bit-flipped":
        path.write_bytes(data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "newer version":
        path.write_bytes(data.replace(b'"version": 4', b'"version": 5', 1))
    elif how == "foreign":
        new_run(path.parents[2] / "other", training={"seed": 77})
        shutil.copy(path.parents[2] / "other" / "checkpoints" / path.name, path)
    elif how == "misnamed":
        shutil.copy(path.with_name("generation-000001.ckpt"), path)
    elif how == "a folder":
        path.unlink()
        path.mkdir()


DAMAGES = {
    "truncated": "is (damaged|not a neuroevo checkpoint)",
    "bit-flipped": "is damaged: its content does not match its SHA-256 sum",
    "empty": "is not a neuroevo checkpoint",
    "newer version": "has version 5 of the format, this neuroevo reads version 4",
    "foreign": "is another run's: training.seed is 77 there and 4 here",
    "misnamed": "is of generation 1, not of 3",
    "a folder": "cannot be read: Is a directory",
}


@pytest.mark.parametrize("how", DAMAGES)
def test_the_checkpoint_before_a_bad_one_is_used(tmp_path, whole, how):
    path = stopped(tmp_path / "run", 3)
    bad = path / "checkpoints" / "generation-000003.ckpt"
    damage(bad, how)
    there = None if bad.is_dir() else bad.read_bytes()
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    [unusable] = folder.unusable
    assert unusable.path == bad
    with pytest.raises(AssertionError, match=DAMAGES[how]):
        raise AssertionError(str(unusable))
    play(folder)
    assert results(path) == whole
    aside = bad.with_name("generation-000003.ckpt.unusable")
    assert aside.is_dir() if there is None else aside.read_bytes() == there
    assert f"passed over {bad}" in (path / "log.txt").read_text()


@pytest.mark.parametrize("how", DAMAGES)
def test_no_checkpoint_to_go_on_from(tmp_path, how):
    path = stopped(tmp_path / "run", 3)
    damage(path / "checkpoints" / "generation-000003.ckpt", how)
    for generation in (1, 2):
        (path / "checkpoints" / f"generation-00000{generation}.ckpt").unlink()
    before = contents(path)
    message = f"has no checkpoint to go on from:\\n.*generation-000003.ckpt {DAMAGES[how]}"
    if how == "newer version":  # no checkpoint is of this version's format, which is refused in one line
        message = f"^another version of neuroevo made the run in .*: its checkpoints have{DAMAGES[how][3:]}$"
    with pytest.raises(UserError, match=message):
        RunFolder.resume(path)
    assert contents(path) == before


def test_the_command_says_what_it_passed_over(tmp_path):
    path = stopped(tmp_path / "run", 3)
    damage(path / "checkpoints" / "generation-000003.ckpt", "bit-flipped")
    done = command("train", "--resume", path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("neuroevo: passed over") == 1
    assert "generation-000003.ckpt is damaged" in done.stderr
    assert "from generation 2" in done.stdout


def command(*arguments, **options):
    arguments = [sys.executable, "-m", "tests.support.toy_cli", *map(str, arguments)]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("name", ["metrics.jsonl", "elites.jsonl"])
def test_files_shorter_than_the_checkpoint_remembers(tmp_path, whole, name):
    path = stopped(tmp_path / "run", 3)
    size = (path / name).stat().st_size
    with (path / name).open("ab") as file:
        file.truncate(size - 1)
    folder = RunFolder.resume(path)
    assert folder.state.generation == 2
    [unusable] = folder.unusable
    assert unusable.reason == (
        f"remembers other files: {path / name} has {size - 1:,} bytes, expected at least the {size:,} of the checkpoint"
    )
    play(folder)
    assert results(path) == whole


@pytest.mark.parametrize("name", ["metrics.jsonl", "elites.jsonl"])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"{", b"x", "line 1 of .*{name} is not JSON"),
        (b'"', b"\0", "line 1 of .*{name} is not JSON"),
        (None, None, "{name} has 0 bytes, expected at least"),
    ],
)
def test_damaged_files_are_not_gone_on_with(tmp_path, name, old, new, message):
    path = stopped(tmp_path / "run", 3)
    (path / "checkpoints" / "generation-000000.ckpt").unlink(missing_ok=True)
    if old is None:
        (path / name).unlink()
    else:
        (path / name).write_bytes((path / name).read_bytes().replace(old, new, 1))
    before = contents(path)
    expected = message.replace("{name}", name)
    with pytest.raises(
        UserError, match=f"has no checkpoint to go on from:(\\n.*remembers other files: .*{expected}.*){{3}}"
    ):
        RunFolder.resume(path)
    assert contents(path) == before


def test_an_elite_of_another_family_is_noticed(tmp_path):
    path = stopped(tmp_path / "run", 3)
    lines = (path / "elites.jsonl").read_text().splitlines(keepends=True)
    lines[0] = lines[0].replace('"same": 0', '"same": 7')
    (path / "elites.jsonl").write_text("".join(lines))
    with pytest.raises(
        UserError, match="elites.jsonl is damaged: a genome shares 7 mutations with one that is not there"
    ):
        RunFolder.resume(path)


def test_checkpoints_of_another_run_in_the_way(tmp_path):
    path = stopped(tmp_path / "run", 3)
    for name in ("config.toml", "metrics.jsonl", "elites.jsonl"):
        (path / name).unlink()
    before = contents(path)
    with pytest.raises(UserError, match="holds checkpoints of a run without its config.toml"):
        new_run(path)
    assert contents(path) == before


def test_no_checkpoint_is_deleted_for_older_ones_than_itself(tmp_path):
    """However they came there, higher numbers do not push out what the run is about to need."""
    state = RunFolder.create(tmp_path / "x", config()).state
    checkpoints = Checkpoints(tmp_path / "checkpoints", CheckpointSettings(keep_last=1))
    for generation in (28, 29, 1, 2):
        checkpoints.save(Checkpoint(replace(state, generation=generation), {}, {}))
    assert checkpoints.generations() == [2, 29]


def test_reading_while_the_run_replaces_its_only_checkpoint(tmp_path):
    new_run(tmp_path / "run")
    state, path = RunReader(tmp_path / "run").state(), tmp_path / "run" / "checkpoints"
    origin, over = config().origin(), threading.Event()

    def write():
        checkpoints = Checkpoints(path, CheckpointSettings(keep_last=1))
        for generation in range(100, 100_000):
            checkpoints.save(Checkpoint(replace(state, generation=generation), origin, {}))
            if over.is_set():
                return

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3000):
            assert RunReader(tmp_path / "run").state().generation >= 3
    finally:
        over.set()
        writer.join()


def test_default_folders_of_runs_that_start_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [RunFolder.create(None, config(training={"seed": seed}), "same") for seed in range(3)]
    assert not (tmp_path / "runs").exists()
    for folder in folders:
        play(folder)
    assert len({folder.path for folder in folders}) == 3
    assert sorted(RunReader(folder.path).config.training.seed for folder in folders) == [0, 1, 2]


def test_lines_of_an_unfinished_generation_are_cut_off(tmp_path, whole):
    path = stopped(tmp_path / "run", 3)
    for name in ("metrics.jsonl", "elites.jsonl", "metrics.csv"):
        with (path / name).open("ab") as file:
            file.write(b'{"generation": 3, "fitness_me')
    assert len(RunReader(path).rows()) == 3
    play(RunFolder.resume(path))
    assert results(path) == whole


def test_an_edited_configuration(tmp_path):
    path = stopped(tmp_path / "run", 2)
    text = (path / "config.toml").read_text()
    (path / "config.toml").write_text(text.replace("population = 8", "population = 9"))
    with pytest.raises(UserError, match="is another run's: algorithm.population is 8 there and 9 here"):
        RunFolder.resume(path)


def test_a_run_without_its_configuration_is_not_overwritten(tmp_path):
    path = stopped(tmp_path / "run", 2)
    (path / "config.toml").unlink()
    before = contents(path)
    with pytest.raises(UserError, match="holds metrics.jsonl of a run without its config.toml"):
        new_run(path)
    with pytest.raises(UserError, match="there is no run in"):
        RunFolder.resume(path)
    assert contents(path) == before


def test_one_process_at_a_time(tmp_path):
    path = stopped(tmp_path / "run", 2)
    with RunFolder.resume(path):
        with pytest.raises(UserError, match="another process is training into"):
            RunFolder.resume(path)
        done = command("train", "--resume", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "another process is training into" in done.stderr
    assert RunFolder.resume(path).state.generation == 2


def test_with_a_configuration_it_starts_or_goes_on(tmp_path, whole):
    file, path = tmp_path / "c.toml", tmp_path / "run"
    file.write_text(config().toml())
    shorter = ["--set", "training.generations=2"]
    assert command("train", file, "--resume", path, *shorter).returncode == 0
    assert len(read_rows(path)) == 2
    done = command("train", file, "--resume", path)
    assert "from generation 2" in done.stdout
    assert results(path) == whole
    done = command("train", file, "--resume", path, "--set", "training.seed=5")
    assert done.returncode == 2
    assert "training.seed is 4 and cannot become 5" in done.stderr


@pytest.mark.parametrize(
    ("sent", "code", "word"),
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated"), ("SIGHUP", 129, "hung up")],
)
def test_signals_leave_a_run_that_goes_on(tmp_path, sent, code, word):
    file, path = tmp_path / "c.toml", tmp_path / "run"
    endless = {"training": {"generations": 10**6}, "checkpoints": {"every": 10**6}}
    file.write_text(config(**endless).toml())
    arguments = [sys.executable, "-m", "tests.support.toy_cli", "train", file, "--out", path]
    process = subprocess.Popen(
        arguments, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    while "generation 5:" not in (line := process.stdout.readline()):
        assert line, process.stderr.read()
    process.send_signal(getattr(signal, sent))
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == code
    assert stderr == f"neuroevo: {word}; go on with: neuroevo train --resume {path}\n"
    folder = RunFolder.resume(path)
    assert folder.state.generation == len(read_rows(path)) >= 6  # although none was due
    last = folder.state.generation + 2
    folder.close()
    play(RunFolder.resume(path, [f"training.generations={last}"]))
    new_run(tmp_path / "whole", training={"generations": last}, checkpoints={"every": 10**6})
    assert results(path)["rows"] == results(tmp_path / "whole")["rows"]


def endless(path, program=(), terminal=None, **options):
    """A run in a process of its own that goes on for ever, after some generations of it."""
    file = path.with_suffix(".toml")
    file.write_text(config(training={"generations": 10**6}, checkpoints={"every": 10**6}).toml())
    arguments = [*program, sys.executable, "-m", "tests.support.toy_cli", "train", file, "--out", path]
    process = subprocess.Popen(arguments, cwd=ROOT, **options)
    wait_for_rows(path, process, 5, terminal)
    return process


def wait_for_rows(path, process, count, terminal=None):
    """Until the run has so many; meanwhile a terminal shows what it gets."""
    deadline = time.monotonic() + 60
    while not (path / "metrics.jsonl").is_file() or (path / "metrics.jsonl").read_bytes().count(b"\n") < count:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
        with suppress(BlockingIOError):
            while terminal is not None:
                os.read(terminal, 4096)


def test_under_nohup_a_run_goes_on(tmp_path):
    out = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = endless(tmp_path / "run", ["nohup"], **out)
    process.send_signal(signal.SIGHUP)
    wait_for_rows(tmp_path / "run", process, len(read_rows(tmp_path / "run")) + 20)
    process.terminate()
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 143
    assert stderr.endswith(f"neuroevo: terminated; go on with: neuroevo train --resume {tmp_path / 'run'}\n")


def test_a_closed_terminal_leaves_a_run_that_goes_on(tmp_path):
    """The kernel sends SIGHUP to those of the terminal, and nothing can be written to it any more."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = endless(
        tmp_path / "run", terminal=ours, start_new_session=True, **streams,
        preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    os.close(ours)
    assert process.wait(timeout=20) != 0
    folder = RunFolder.resume(tmp_path / "run")
    assert folder.state.generation == len(read_rows(tmp_path / "run")) >= 5  # although none was due
    folder.close()


def test_a_second_hangup_does_not_break_off_what_the_first_began():
    with pytest.raises(HungUp), sigterm_raises():
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            signal.raise_signal(signal.SIGHUP)
    with pytest.raises(Terminated) as raised, sigterm_raises():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGHUP)
    assert raised.type is Terminated
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_a_warm_start(tmp_path):
    new_run(tmp_path / "first")
    best = RunReader(tmp_path / "first").state().algorithm
    start_from = {"start_from": str(tmp_path / "first"), "seed": 9, "generations": 2}
    toy = ToyEvaluator()
    new_run(tmp_path / "second", toy, training=start_from)
    assert toy.calls[1][0].genome == best.elite
    assert {episode.genome.parent for episode in toy.calls[0]} <= set(best.parents)
    shutil.rmtree(tmp_path / "first")  # the checkpoints have what a resumed run needs
    again = RunFolder.resume(tmp_path / "second", ["training.generations=3"])
    play(again)
    assert len(read_elites(tmp_path / "second")) == 3


def test_a_start_from_a_run_with_a_damaged_checkpoint_says_so(tmp_path):
    first = stopped(tmp_path / "first", 3)
    damage(first / "checkpoints" / "generation-000003.ckpt", "bit-flipped")
    start_from = f"training.start_from={first}"
    done = command("train", first / "config.toml", "--out", tmp_path / "second", "--set", start_from)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("passed over") == 1
    assert "generation-000003.ckpt is damaged" in done.stderr
    assert len(read_elites(tmp_path / "second")) == 5


def test_what_one_cannot_start_from(tmp_path):
    def start(path, **changes):
        RunFolder.create(tmp_path / "new", config(training={"start_from": str(path)}, **changes))

    with pytest.raises(UserError, match="there is no run in .*absent: expected .*absent/config.toml"):
        start(tmp_path / "absent")
    stopped(tmp_path / "begun", 0)
    with pytest.raises(UserError, match='start_from = .*begun": it has no checkpoint after a finished generation yet'):
        start(tmp_path / "begun")
    new_run(tmp_path / "large", network={"name": "large_model"})
    with pytest.raises(UserError, match="start_from = .*large\": its network is large_model, this run's is model"):
        start(tmp_path / "large")


ES = {"name": "es", "population": 8, "sigma": 0.1}


def test_a_start_from_a_run_whose_newest_elite_is_in_no_checkpoint(tmp_path):
    """As one is left that was killed between two checkpoints: what it goes on from is what others start from."""
    first = tmp_path / "first"
    new_run(first, algorithm=ES, checkpoints={"every": 2})
    (first / "checkpoints" / "generation-000005.ckpt").unlink()
    with pytest.raises(UserError, match="weights of generation 4's elite .* expected one of these generations: 1, 3 "):
        RunReader(first).elite(4)
    assert RunReader(first).elite() == RunReader(first).elite(3) and RunReader(first).elite()[0] == 3
    center = RunReader(first).state(4).algorithm.center
    folder = RunFolder.create(tmp_path / "second", config(algorithm=ES, training={"start_from": str(first)}))
    assert folder.state.algorithm.center == center
    assert np.array_equal(folder.state.algorithm.center.base.vector, center.base.vector)


@pytest.mark.parametrize("how", ["truncated", "bit-flipped", "newer version"])
def test_an_elite_whose_checkpoint_cannot_be_used(tmp_path, how):
    """It is neither said to be gone nor passed over for an older one in silence."""
    path = tmp_path / "run"
    new_run(path, algorithm=ES)
    for generation in (4, 5):
        damage(path / "checkpoints" / f"generation-00000{generation}.ckpt", how)
    for generation in (None, 4):
        with pytest.raises(
            UserError,
            match=f"the weights of generation 4's elite are not known any more, since {path}/checkpoints/"
            f"generation-000005.ckpt {DAMAGES[how]}.*; expected one of these generations: 2 ",
        ):
            RunReader(path).elite(generation)
    assert RunReader(path).elite(2)[1].genome.base.at_hand


def test_elites_whose_center_is_not_that_of_the_newest(tmp_path):
    """Where the parents that a run began with have centers of their own, any checkpoint with all of them has these."""
    ns_es = {"name": "ns_es", "population": 8, "sigma": 0.1, "centers": 3}
    new_run(tmp_path / "first", algorithm=ns_es, training={"generations": 8})
    training = {"start_from": str(tmp_path / "first"), "generations": 1}
    path = tmp_path / "second"
    new_run(path, training=training, checkpoints={"every": 10})
    (path / "checkpoints" / "generation-000001.ckpt").unlink()  # the one that is left has no elite of this run
    parents = RunReader(path).state().algorithm.parents
    centers = [parent.base for parent in parents if isinstance(parent.base, Center)]
    assert len(set(centers)) > 1
    for center in centers:
        line = {"generation": 0, "elite": genome_to_json(Genome(center, ((5, 0.5),)))}
        (path / "elites.jsonl").write_text(json.dumps(line) + "\n")
        _, elite = RunReader(path).elite()
        assert np.array_equal(elite.genome.base.vector, center.vector) and elite.genome.chain == ((5, 0.5),)


def change_origin(file, **sections):
    """Has a checkpoint remember other sections of its run's configuration."""
    head, body, rest = file.read_bytes().split(b"\n", 2)
    body = json.loads(body)
    body["origin"].update(sections)
    content = json.dumps(body).encode() + b"\n" + rest
    head = {**json.loads(head), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    file.write_bytes(json.dumps(head).encode() + b"\n" + content)


CARTPOLE = {"name": "gymnasium:CartPole-v1", "options": {"workers": 1, "kwargs": {"max_episode_steps": 50}}}
MLP = {"name": "mlp", "hidden": [4]}


def test_workers_and_timeout_may_change_and_other_options_may_not(tmp_path):
    changes = {"env": CARTPOLE, "network": MLP}
    new_run(tmp_path / "whole", **changes)
    path = stopped(tmp_path / "run", 2, **changes)
    for override, message in [
        (
            "env.options.kwargs.max_episode_steps=60",
            "env.options is .*50.* and cannot become .*60.* workers and timeout",
        ),
        ("env.options.worker=2", "there is no such key; did you mean workers?"),
        ("env.options.workers=0", "env.options.workers = 0: expected at least 1"),
    ]:
        with pytest.raises(UserError, match=message):
            RunFolder.resume(path, [override])
    folder = RunFolder.resume(path, ["env.options.workers=2", "env.options.timeout=20"])
    assert (folder.state.generation, folder.unusable) == (2, [])
    play(folder)
    assert results(path) == results(tmp_path / "whole")
    options = {"workers": 2, "timeout": 20, "kwargs": {"max_episode_steps": 50}}
    assert load_config(path / "config.toml").env.options == options
    assert RunReader(path).state().generation == 5
    change_origin(path / "checkpoints" / "generation-000005.ckpt", env={"name": CARTPOLE["name"]})
    with pytest.raises(UserError, match="is another run's: env.options is not set there and .*50.* here"):
        RunReader(path).state(5)


MAZE = "start 0 0\nheading 90\ngoal 0 {}\nwall 9 -9 9 9\n"


def test_files_of_an_environment_are_those_of_the_folder_where_the_run_began(tmp_path, monkeypatch):
    """Also where the other folder has one of that name, or none."""
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "maze.txt").write_text(MAZE.format(20))
    (tmp_path / "there" / "maze.txt").write_text(MAZE.format(30))
    absolute = str(tmp_path / "here" / "maze.txt")
    monkeypatch.chdir(tmp_path / "here")
    relative = {"env": {"name": "hard_maze", "options": {"map": "./maze.txt"}}, "network": MLP}
    path = stopped(tmp_path / "run", 2, **relative)
    for folder in (tmp_path / "there", tmp_path):
        monkeypatch.chdir(folder)
        assert RunReader(path).config.env.options == {"map": absolute}
        with RunFolder.resume(path) as resumed:
            assert (resumed.state.generation, resumed.unusable) == (2, [])
    monkeypatch.chdir(tmp_path / "there")
    with pytest.raises(UserError, match=f'map = "{absolute}".* cannot become .*there/maze.txt'):
        RunFolder.resume(path, config=config(**relative))
    monkeypatch.chdir(tmp_path / "here")
    play(RunFolder.resume(path, config=config(**relative)))
    assert load_config(path / "config.toml").env.options == {"map": absolute}
    assert len(read_rows(path)) == 5


def began_on(path, file):
    """A run of two generations on the maze in a file, which is written."""
    file.write_text(MAZE.format(20))
    return stopped(path, 2, env={"name": "hard_maze", "options": {"map": str(file)}}, network=MLP)


def test_a_file_of_the_environment_that_became_another_one_is_refused(tmp_path):
    """By all that play there; whoever only takes the run's genomes or checks a configuration does not mind."""
    maze, other = tmp_path / "maze.txt", MAZE.format(30)
    path = began_on(tmp_path / "run", maze)
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (other, MAZE.format(20))]
    maze.write_text(other)
    refused = (
        f"env.options.map: {maze} is not what the run in {path} began with: .* is {digests[0]}, expected {digests[1]}"
    )
    before = contents(path)
    for play_there in (
        lambda: RunFolder.resume(path),
        lambda: RunFolder.resume(path, config=load_config(path / "config.toml")),
        lambda: RunReader(path).elite(),
        lambda: RunReader(path).elite(0),
    ):
        with pytest.raises(UserError, match=refused):
            play_there()
    for arguments in (["train", "--resume", path], ["evaluate", path], ["render", path, "--out", tmp_path / "v.mp4"]):
        done = command(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{maze} is not what the run in {path} began with" in done.stderr
    assert contents(path) == before
    assert command("config", "show", path / "config.toml").returncode == 0
    start = {"env": {"name": "hard_maze", "options": {"map": str(maze)}}, "network": MLP}
    new_run(tmp_path / "next", **start, training={"start_from": str(path), "generations": 1})
    maze.unlink()
    with pytest.raises(UserError, match=f"there is no {maze}"):
        RunFolder.resume(path)
    maze.write_text(MAZE.format(20))
    play(RunFolder.resume(path))
    assert len(read_rows(path)) == 5


def test_a_file_of_the_environment_that_changes_while_the_run_goes_is_the_old_one(tmp_path):
    """The environments were made from what it held at the start."""
    maze = tmp_path / "maze.txt"
    maze.write_text(MAZE.format(20))

    class Changing(ToyEvaluator):
        def submit(self, *arguments):
            maze.write_text(MAZE.format(30))
            return super().submit(*arguments)

    new_run(tmp_path / "run", Changing(), env={"name": "hard_maze", "options": {"map": str(maze)}}, network=MLP)
    with pytest.raises(UserError, match=f"{maze} is not what the run in .* began with"):
        RunFolder.resume(tmp_path / "run", ["training.generations=6"])


@pytest.mark.parametrize("stays", [False, True])
def test_a_file_of_the_environment_may_be_moved(tmp_path, stays):
    maze, place = tmp_path / "maze.txt", tmp_path / "a place" / "other.txt"
    path = began_on(tmp_path / "run", maze)
    new_run(tmp_path / "whole", env={"name": "hard_maze", "options": {"map": str(maze)}}, network=MLP)
    place.parent.mkdir()
    shutil.copy(maze, place)
    if not stays:
        maze.unlink()
    moved = f"env.options.map={json.dumps(str(place))}"
    with pytest.raises(UserError, match="training.seed is 4 and cannot become 5"):
        RunFolder.resume(path, [moved, "training.seed=5"])
    if stays:
        with pytest.raises(UserError, match=rf'env.options is .*"{maze}".* cannot become .*map = "hard"'):
            RunFolder.resume(path, ["env.options.map=hard"])
    play(RunFolder.resume(path, [moved]))
    assert load_config(path / "config.toml").env.options == {"map": str(place)}
    assert results(path) == results(tmp_path / "whole")
    place.write_text(MAZE.format(30))
    with pytest.raises(UserError, match=f"{place} is not what the run in {path} began with"):
        RunReader(path).elite()


def test_a_model_of_mujoco_that_became_another_one_is_refused(tmp_path):
    from neuroevo.envs.mujoco import model_path

    model = tmp_path / "hopper.xml"
    shutil.copy(model_path("hopper.xml"), model)
    path = stopped(tmp_path / "run", 2, env={"name": "Hopper-v5", "options": {"xml_file": str(model)}}, network=MLP)
    RunFolder.resume(path).close()
    model.write_text(model.read_text().replace("<mujoco", "<!-- heavier --><mujoco", 1))
    with pytest.raises(UserError, match=f"env.options.xml_file: {model} is not what the run in {path} began with"):
        RunFolder.resume(path)
