"""A run that is resumed ends as one that was never stopped, and the folder tells that it was resumed."""

import json
import math

import pytest

from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.metrics_rows import read_rows
from neuroevo.runs.reader import RunReader
from tests.support.runs import checkpoints_of, config, contents, interrupted_run, new_run, play, results

RANDOM_SEARCH = {"algorithm": {"name": "random_search", "population": 8, "validation_candidates": 3}}
SCHEDULES = {
    "training": {"max_episode_steps": "adaptive:12,0.5,1.5,28"},
    "algorithm": {
        "sigma": {"type": "LinearSchedule", "initial_p": 0.5, "final_p": 0.1, "schedule": 4, "field": "iteration"}
    },
}


@pytest.mark.parametrize("changes", [{}, RANDOM_SEARCH], ids=["ga", "random_search"])
@pytest.mark.parametrize("finished", range(5))
def test_resumed_at_any_generation(tmp_path, whole_run, finished, changes):
    path = interrupted_run(tmp_path / "run", finished, **changes)
    assert len(read_rows(path)) == finished
    folder = RunFolder.resume(path)
    assert folder.state.generation == finished
    play(folder)
    assert results(path) == whole_run(**changes)


@pytest.mark.parametrize("finished", [1, 3])
def test_an_adaptive_max_episode_steps_and_schedules_go_on(tmp_path, whole_run, finished):
    path = interrupted_run(tmp_path / "run", finished, **SCHEDULES)
    play(RunFolder.resume(path))
    assert results(path) == whole_run(**SCHEDULES)


def test_the_wall_time_goes_on(tmp_path):
    path = interrupted_run(tmp_path / "run", 2)
    before = read_rows(path)[-1]["seconds_total"]
    folder = RunFolder.resume(path)
    assert folder.state.seconds == pytest.approx(before, abs=0.001)
    play(folder)
    assert read_rows(path)[-1]["seconds_total"] > before


def test_budgets_checkpoints_and_hardware_may_change(tmp_path, whole_run):
    path = tmp_path / "run"
    new_run(path, training={"generations": 2})
    play(RunFolder.resume(path, ["training.generations=5", "checkpoints.keep_last=1", "hardware.threads=1"]))
    assert results(path) == whole_run()
    assert load_config(path / "config.toml").training.generations == 5
    assert len(checkpoints_of(path)) == 1


@pytest.mark.parametrize(
    ("override", "before"),
    [
        ("algorithm.sigma=0.3", "0.2"),
        ("training.seed=5", "4"),
        ("env.name=pong", "frostbite"),
        ("algorithm.parents=2", "3"),
    ],
)
def test_what_results_depend_on_cannot_change(tmp_path, override, before):
    path = interrupted_run(tmp_path / "run", 2)
    there = contents(path)
    key, after = override.split("=")
    with pytest.raises(UserError, match=f"^{key} is {before} and cannot become {after} "):
        RunFolder.resume(path, [override])
    assert contents(path) == there


def test_a_change_must_be_right(tmp_path):
    path = interrupted_run(tmp_path / "run", 2)
    there = contents(path)
    with pytest.raises(UserError) as raised:
        RunFolder.resume(path, ["training.generations=0"])
    assert [(problem.key, problem.value) for problem in raised.value.problems] == [("training.generations", 0)]
    assert contents(path) == there


def test_resuming_a_finished_run_changes_no_result(tmp_path, whole_run):
    new_run(tmp_path / "run")
    play(RunFolder.resume(tmp_path / "run"))
    assert results(tmp_path / "run") == whole_run()


def test_what_the_folder_tells_about_resuming(tmp_path):
    path = interrupted_run(tmp_path / "run", 2)
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


@pytest.mark.parametrize("written", ["by this version", "by an earlier one"])
def test_infinite_bounds_do_not_lose_the_file_that_says_where_a_run_comes_from(tmp_path, written):
    """Hopper's are; JSON has none, and resuming a run took a file with them for a damaged one."""

    def strict(text):
        return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    hopper = {"env": {"name": "Hopper-v5"}, "network": {"name": "mlp"}}
    path, file = interrupted_run(tmp_path / "run", 2, **hopper), tmp_path / "run" / "info.json"
    began = strict(file.read_text())
    assert began["environment"]["healthy_z_range"] == [0.7, "inf"]
    if written == "by an earlier one":
        file.write_text(file.read_text().replace('"inf"', "Infinity"))
        assert json.loads(file.read_text())["environment"]["healthy_z_range"] == [0.7, math.inf]
    play(RunFolder.resume(path))
    info = strict(file.read_text())
    assert [again["generation"] for again in info.pop("resumed")] == [2]
    assert info == {key: value for key, value in began.items() if key != "resumed"}


@pytest.mark.parametrize("damaged", ['{"command": ', "[]", "null", '{"resumed": null}'])
def test_a_damaged_info_stops_nothing(tmp_path, damaged):
    path = interrupted_run(tmp_path / "run", 2)
    (path / "info.json").write_text(damaged)
    play(RunFolder.resume(path))
    info = json.loads((path / "info.json").read_text())
    assert [again["generation"] for again in info["resumed"]] == [2]


def test_lines_of_an_unfinished_generation_are_cut_off(tmp_path, whole_run):
    path = interrupted_run(tmp_path / "run", 3)
    for name in ("metrics.jsonl", "elites.jsonl", "metrics.csv"):
        with (path / name).open("ab") as file:
            file.write(b'{"generation": 3, "fitness_me')
    assert len(RunReader(path).rows()) == 3
    play(RunFolder.resume(path))
    assert results(path) == whole_run()


def test_with_a_configuration_it_starts_or_goes_on(tmp_path, toy_command, whole_run):
    file, path = tmp_path / "c.toml", tmp_path / "run"
    file.write_text(config().toml())
    assert toy_command("train", file, "--resume", path, "--set", "training.generations=2").returncode == 0
    assert len(read_rows(path)) == 2
    assert "from generation 2" in toy_command("train", file, "--resume", path).stdout
    assert results(path) == whole_run()
    done = toy_command("train", file, "--resume", path, "--set", "training.seed=5")
    assert done.returncode == 2
    assert "training.seed is 4" in done.stderr


def test_one_process_at_a_time(tmp_path, toy_command):
    path = interrupted_run(tmp_path / "run", 2)
    with RunFolder.resume(path):
        with pytest.raises(UserError, match=f"another process .*{path}"):
            RunFolder.resume(path)
        done = toy_command("train", "--resume", path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "another process" in done.stderr
    with RunFolder.resume(path) as free_again:
        assert free_again.state.generation == 2


def test_default_folders_of_runs_that_start_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [RunFolder.create(None, config(training={"seed": seed}), "same") for seed in range(3)]
    assert not (tmp_path / "runs").exists()
    for folder in folders:
        play(folder)
    assert len({folder.path for folder in folders}) == 3
    assert sorted(RunReader(folder.path).config.training.seed for folder in folders) == [0, 1, 2]


@pytest.mark.parametrize(
    ("lost", "held"),
    [
        (["config.toml"], "metrics.jsonl"),
        (["config.toml", "metrics.jsonl", "elites.jsonl"], "checkpoints"),
    ],
)
def test_a_run_without_its_configuration_is_not_overwritten(tmp_path, lost, held):
    path = interrupted_run(tmp_path / "run", 3)
    for name in lost:
        (path / name).unlink()
    there = contents(path)
    with pytest.raises(UserError, match=f"{path} holds {held} "):
        new_run(path)
    with pytest.raises(UserError, match=f"no run in {path}"):
        RunFolder.resume(path)
    assert contents(path) == there
