"""A resumed run has the results of an uninterrupted run, and its folder records the resume."""

import json

import pytest

from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import checkpoints_of, delete_states_after, info_of, query, read_rows
from tests.support.runs import config, contents, interrupted_run, new_run, play, results

ES = {"algorithm": {"name": "es", "population": 8, "sigma": 0.2}}
SCHEDULES = {
    "training": {"max_episode_steps": "adaptive:12,0.5,1.5,28"},
    "algorithm": {
        "sigma": {"type": "LinearSchedule", "initial_p": 0.5, "final_p": 0.1, "schedule": 4, "field": "iteration"}
    },
}


@pytest.mark.parametrize("finished", range(5))
def test_resumed_at_any_generation(tmp_path, whole_run, finished):
    path = interrupted_run(tmp_path / "run", finished)
    assert len(read_rows(path)) == finished
    folder = RunFolder.resume(path)
    assert folder.state.generation == finished
    play(folder)
    assert results(path) == whole_run()


@pytest.mark.parametrize("finished", [1, 3])
def test_an_adaptive_max_episode_steps_and_schedules_go_on(tmp_path, whole_run, finished):
    path = interrupted_run(tmp_path / "run", finished, **SCHEDULES)
    play(RunFolder.resume(path))
    assert results(path) == whole_run(**SCHEDULES)


def test_the_wall_time_goes_on(tmp_path):
    path = interrupted_run(tmp_path / "run", 2)
    (before,) = query(path, "SELECT seconds_total FROM generations WHERE generation = 1")[0]
    with RunFolder.resume(path).open(["test"]):
        pass
    first, second = (seconds for (seconds,) in query(path, "SELECT seconds FROM sessions ORDER BY id"))
    assert before <= first <= second  # some episodes of the third generation have finished
    play(RunFolder.resume(path))
    assert second < read_rows(path)[2]["seconds_total"] < second + 60


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
    info = info_of(path)
    assert [again["generation"] for again in info["resumed"]] == [2]
    assert set(info["resumed"][0]) >= {"command", "started", "versions", "git_commit", "machine"}
    with RunFolder.resume(path).open([], {"device": "gpu"}):  # it may differ from the first device
        pass
    info = info_of(path)
    assert info["resumed"][1]["device"] == "gpu" and "device" not in info
    assert query(path, "SELECT generation, ended FROM sessions ORDER BY id") == [(0, 1), (2, 1), (5, 1)]
    log = (path / "log.txt").read_text()
    assert "stopped in generation 2: KeyboardInterrupt()" in log
    assert "from generation 2" in log
    assert log.count("generation 4: fitness mean") == 1


def test_infinite_bounds_do_not_lose_where_a_run_comes_from(tmp_path):
    """Hopper's are, and JSON has none."""

    def strict():
        [(text,)] = query(path, "SELECT info FROM run")
        return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    hopper = {"env": {"name": "Hopper-v5"}, "network": {"name": "mlp"}}
    path = interrupted_run(tmp_path / "run", 2, **hopper)
    began = strict()
    assert began["environment"]["healthy_z_range"] == [0.7, "inf"]
    play(RunFolder.resume(path))
    assert {**strict(), "resumed": []} == {**began, "resumed": []}


def test_what_was_played_after_the_state_is_played_again(tmp_path, whole_run):
    """As if a run was killed between two states: rows of generations and genomes after the state are deleted."""
    path = tmp_path / "run"
    new_run(path, **ES)
    delete_states_after(path, 3)
    assert len(RunReader(path).rows()) == 5
    with RunFolder.resume(path).open(["test"]) as folder:
        assert folder.state.generation == 3
    for table in ("generations", "members", "populations", "genomes"):
        assert query(path, f"SELECT max(generation) FROM {table}") == [(2,)]
    play(RunFolder.resume(path))
    assert results(path) == whole_run(**ES)


def test_what_is_for_people_is_written_again(tmp_path, capsys, whole_run):
    path = interrupted_run(tmp_path / "run", 3)
    text = (path / "config.toml").read_text()
    (path / "config.toml").write_text(text.replace("seed = 4", "seed = 5"))
    with (path / "metrics.csv").open("a") as file:
        file.write("3,-1.5,")
    with RunFolder.resume(path).open(["test"]):
        assert (path / "config.toml").read_text() == text
    assert f"{path}/config.toml differs from the run's configuration" in capsys.readouterr().err
    (path / "config.toml").unlink()
    (path / "metrics.csv").unlink()
    play(RunFolder.resume(path))
    assert (path / "config.toml").read_text() == text
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


def test_default_folders_of_runs_that_start_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folders = [RunFolder.create(None, config(training={"seed": seed}), "same") for seed in range(3)]
    assert not (tmp_path / "runs").exists()
    for folder in folders:
        play(folder)
    assert len({folder.path for folder in folders}) == 3
    assert sorted(RunReader(folder.path).config.training.seed for folder in folders) == [0, 1, 2]


@pytest.mark.parametrize(("lost", "held"), [([], "config.toml"), (["config.toml"], "metrics.csv")])
def test_what_is_left_of_a_run_without_its_database_is_not_overwritten(tmp_path, lost, held):
    path = interrupted_run(tmp_path / "run", 3)
    for name in ("run.db", *lost):
        (path / name).unlink()
    there = contents(path)
    with pytest.raises(UserError, match=f"{path} holds {held} "):
        new_run(path)
    with pytest.raises(UserError, match=f"no run in {path}"):
        RunFolder.resume(path)
    assert contents(path) == there
