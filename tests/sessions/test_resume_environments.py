"""Changes of [env] when a run is resumed: workers, timeout and the path of a file, but not its content."""

import hashlib
import json
import shutil

import pytest

from neuroevo.config.load import load_config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.envs.mujoco import model_path
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import read_rows
from tests.support.runs import config, contents, interrupted_run, new_run, play, results
from tests.support.toy import ToyEvaluator

MLP = {"name": "mlp", "hidden": [4]}
CARTPOLE = {
    "env": {"name": "gymnasium:CartPole-v1", "options": {"workers": 1, "kwargs": {"max_episode_steps": 50}}},
    "network": MLP,
}
MAZE = "start 0 0\nheading 90\ngoal 0 20\nwall 9 -9 9 9\n"
OTHER_MAZE = MAZE.replace("goal 0 20", "goal 0 30")
BEGAN_WITH = "{file} has changed since the run in {path} began"


def on_maze(file):
    """Return changes of a configuration that select the maze in a file."""
    return {"env": {"name": "hard_maze", "options": {"map": str(file)}}, "network": MLP}


@pytest.fixture
def maze(tmp_path):
    """File that contains MAZE."""
    (tmp_path / "maze.txt").write_text(MAZE)
    return tmp_path / "maze.txt"


@pytest.fixture
def path(tmp_path, maze):
    """Run in that maze that was interrupted after two generations."""
    return interrupted_run(tmp_path / "run", 2, **on_maze(maze))


def test_workers_and_timeout_may_change(tmp_path, whole_run):
    path = interrupted_run(tmp_path / "run", 2, **CARTPOLE)
    folder = RunFolder.resume(path, ["env.options.workers=2", "env.options.timeout=20"])
    assert (folder.state.generation, folder.unusable) == (2, [])
    play(folder)
    assert results(path) == whole_run(**CARTPOLE)
    options = {"workers": 2, "timeout": 20, "kwargs": {"max_episode_steps": 50}}
    assert load_config(path / "config.toml").env.options == options
    assert RunReader(path).state().generation == 5


def test_other_options_may_not_change(tmp_path):
    path = interrupted_run(tmp_path / "run", 2, **CARTPOLE)
    with pytest.raises(UserError, match="^env.options is .*50.* cannot become .*60.* workers and timeout"):
        RunFolder.resume(path, ["env.options.kwargs.max_episode_steps=60"])
    for key, value, reason in [
        ("env.options.worker", 2, "did you mean workers?"),
        ("env.options.workers", 0, "at least 1"),
    ]:
        with pytest.raises(ConfigError) as raised:
            RunFolder.resume(path, [f"{key}={value}"])
        [problem] = raised.value.problems
        assert (problem.key, problem.value) == (key, value) and reason in problem.reason


def test_files_are_those_of_the_folder_where_the_run_began(tmp_path, monkeypatch):
    """Also if the other folder has a file of that name, or no such file."""
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, text in ((here, MAZE), (there, OTHER_MAZE)):
        folder.mkdir()
        (folder / "maze.txt").write_text(text)
    absolute = {"map": str(here / "maze.txt")}
    relative = on_maze("./maze.txt")
    monkeypatch.chdir(here)
    path = interrupted_run(tmp_path / "run", 2, **relative)
    for folder in (there, tmp_path):
        monkeypatch.chdir(folder)
        assert RunReader(path).config.env.options == absolute
        with RunFolder.resume(path) as resumed:
            assert (resumed.state.generation, resumed.unusable) == (2, [])
    monkeypatch.chdir(there)
    with pytest.raises(UserError, match=f"{here}/maze.txt.* cannot become .*{there}/maze.txt"):
        RunFolder.resume(path, config=config(**relative))
    monkeypatch.chdir(here)
    play(RunFolder.resume(path, config=config(**relative)))
    assert load_config(path / "config.toml").env.options == absolute
    assert len(read_rows(path)) == 5


def test_a_file_that_became_another_one_is_refused_by_all_that_play(tmp_path, path, maze, toy_command):
    maze.write_text(OTHER_MAZE)
    sums = [hashlib.sha256(text.encode()).hexdigest() for text in (OTHER_MAZE, MAZE)]
    refused = f"env.options.map: {BEGAN_WITH.format(file=maze, path=path)}.*{sums[0]}, expected {sums[1]}"
    there = contents(path)
    for play_there in (
        lambda: RunFolder.resume(path),
        lambda: RunFolder.resume(path, config=load_config(path / "config.toml")),
        lambda: RunReader(path).elite(),
        lambda: RunReader(path).elite(0),
    ):
        with pytest.raises(UserError, match=refused):
            play_there()
    for arguments in (["train", "--resume", path], ["evaluate", path], ["render", path, "--out", tmp_path / "v.mp4"]):
        done = toy_command(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"env.options.map: {maze}" in done.stderr
    assert contents(path) == there
    maze.write_text(MAZE)
    play(RunFolder.resume(path))
    assert len(read_rows(path)) == 5


def test_who_does_not_play_there_does_not_mind_another_file(tmp_path, path, maze, toy_command):
    """Commands that only read the run's genomes, or check a configuration."""
    maze.write_text(OTHER_MAZE)
    assert toy_command("config", "show", path / "config.toml").returncode == 0
    new_run(tmp_path / "next", **on_maze(maze), training={"start_from": str(path), "generations": 1})


def test_a_file_that_is_gone(path, maze):
    maze.unlink()
    with pytest.raises(UserError, match=f"no {maze}"):
        RunFolder.resume(path)


def test_a_file_that_changes_while_the_run_goes_is_the_old_one(tmp_path, maze):
    """The environments use the content of the file at the start."""

    class Changing(ToyEvaluator):
        def submit(self, *arguments):
            maze.write_text(OTHER_MAZE)
            return super().submit(*arguments)

    path = tmp_path / "run"
    new_run(path, Changing(), **on_maze(maze))
    with pytest.raises(UserError, match=BEGAN_WITH.format(file=maze, path=path)):
        RunFolder.resume(path, ["training.generations=6"])


@pytest.mark.parametrize("stays", [False, True])
def test_a_file_may_be_moved(tmp_path, path, maze, stays):
    new_run(tmp_path / "whole", **on_maze(maze))
    whole = results(tmp_path / "whole")
    place = tmp_path / "a place" / "other.txt"
    place.parent.mkdir()
    shutil.copy(maze, place)
    if not stays:
        maze.unlink()
    moved = f"env.options.map={json.dumps(str(place))}"
    with pytest.raises(UserError, match="^training.seed is 4"):
        RunFolder.resume(path, [moved, "training.seed=5"])
    if stays:
        with pytest.raises(UserError, match=f'^env.options is .*"{maze}".* cannot become .*map = "hard"'):
            RunFolder.resume(path, ["env.options.map=hard"])
    play(RunFolder.resume(path, [moved]))
    assert load_config(path / "config.toml").env.options == {"map": str(place)}
    assert results(path) == whole
    place.write_text(OTHER_MAZE)
    with pytest.raises(UserError, match=BEGAN_WITH.format(file=place, path=path)):
        RunReader(path).elite()


def test_a_model_of_mujoco_that_became_another_one_is_refused(tmp_path):
    model = tmp_path / "hopper.xml"
    shutil.copy(model_path("hopper.xml"), model)
    env = {"name": "Hopper-v5", "options": {"xml_file": str(model)}}
    path = interrupted_run(tmp_path / "run", 2, env=env, network=MLP)
    RunFolder.resume(path).close()
    model.write_text(model.read_text().replace("<mujoco", "<!-- heavier --><mujoco", 1))
    with pytest.raises(UserError, match=f"env.options.xml_file: {BEGAN_WITH.format(file=model, path=path)}"):
        RunFolder.resume(path)
