"""A target ends a run after a generation that does not depend on timing; the meaning of "solved"."""

import subprocess
import sys

import gymnasium
import pytest

from neuroevo.config.load import load_config, make_config
from neuroevo.core.errors import UserError
from neuroevo.sessions.folder import RunFolder
from tests.support.commands import TOY_CLI
from tests.support.runs import config, interrupted_run, new_run, play, read_rows, results
from tests.support.toy import ToyEvaluator

GENERATIONS = 30


@pytest.fixture(scope="module")
def means(tmp_path_factory):
    """Validation and test means by generation of a run without a target."""
    path = tmp_path_factory.mktemp("whole") / "run"
    new_run(path, training={"generations": GENERATIONS})
    return [(row["validation_mean"], row["test_mean"]) for row in read_rows(path)]


def generation_that_reaches(means, target):
    return next(generation for generation, both in enumerate(means) if min(both) >= target)


@pytest.mark.parametrize("late", [0, 1, 3])
@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_run_ends_when_validation_and_test_reach_the_target(tmp_path, means, late, share):
    target = means[0][1] + share * (means[-1][1] - means[0][1])
    expected = generation_that_reaches(means, target)
    assert 0 < expected < GENERATIONS - 1
    state = new_run(tmp_path / "run", ToyEvaluator(late=late), training={"generations": GENERATIONS, "target": target})
    assert state.generation == expected + 1 and not state.pending
    assert state.confirmed_mean == means[expected][1]
    assert [(row["validation_mean"], row["test_mean"]) for row in read_rows(tmp_path / "run")] == means[: expected + 1]


def test_an_elite_that_only_validation_praises_is_not_enough(tmp_path, means):
    """Selection makes validation optimistic: in some generation, validation reaches a value that the test does not."""
    praised = [(generation, sum(both) / 2) for generation, both in enumerate(means) if both[0] > both[1]]
    generation, target = praised[0]
    assert means[generation][0] >= target > means[generation][1]
    state = new_run(tmp_path / "run", training={"generations": GENERATIONS, "target": target})
    assert state.generation > generation + 1


def test_without_test_episodes_validation_decides(tmp_path, means):
    target = means[5][0]
    training = {"generations": GENERATIONS, "target": target, "test_episodes": 0}
    state = new_run(tmp_path / "run", training=training)
    assert state.generation == 1 + next(index for index, (validated, _) in enumerate(means) if validated >= target)


@pytest.mark.parametrize("finished", [1, 4])
def test_an_interrupted_run_ends_after_the_same_generation(tmp_path, means, finished):
    target = means[6][1]
    training = {"generations": GENERATIONS, "target": target}
    new_run(tmp_path / "whole", training=training)
    path = interrupted_run(tmp_path / "run", finished, training=training)
    play(RunFolder.resume(path))
    assert results(path)["rows"] == results(tmp_path / "whole")["rows"]


def test_a_run_goes_on_to_a_higher_target(tmp_path, means):
    path, low, high = tmp_path / "run", means[2][1], means[10][1]
    first = new_run(path, training={"generations": GENERATIONS, "target": low})
    folder = RunFolder.resume(path)
    assert play(folder).generation == first.generation  # the run is already finished
    second = play(RunFolder.resume(path, [f"training.target={high}"]))
    assert second.generation > first.generation
    third = play(RunFolder.resume(path, [f"training.target={max(map(max, means)) + 1}", "training.generations=25"]))
    assert third.generation == 25


def test_the_command_says_which_target_was_reached(tmp_path, means):
    file, target = tmp_path / "run.toml", means[3][1]
    file.write_text(config(training={"generations": GENERATIONS}).toml())
    command = [*TOY_CLI, "train", file, "--out", tmp_path / "run", "--set", f"training.target={target!r}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    last = done.stdout.splitlines()[-1]
    generations = len(read_rows(tmp_path / "run"))
    assert last.startswith(f"finished after {generations} generations: the elite's mean return of ")
    assert f"in test reaches the target, {target:g}; results are in" in last
    with RunFolder.resume(tmp_path / "run") as folder:
        assert folder.config.training.target == target


@pytest.mark.parametrize(
    "env", ["gymnasium:CartPole-v1", "gymnasium:MountainCar-v0", "InvertedPendulum-v5", "Hopper-v5", "half_cheetah"]
)
def test_what_solved_means_is_what_gymnasium_says(env):
    made = make_config({**TABLES, "env": {"name": env}, "training": {"generations": 1, "target": "solved"}})
    name = env.removeprefix("gymnasium:").replace("half_cheetah", "HalfCheetah-v5")
    assert made.training.target == gymnasium.spec(name).reward_threshold is not None


TABLES = {"network": {"name": "mlp"}, "algorithm": {"population": 4, "parents": 2}}


def test_a_maze_is_solved_at_the_goal():
    tables = {**TABLES, "env": {"name": "HardMaze-v0"}, "training": {"generations": 1, "target": "solved"}}
    assert make_config(tables).training.target == -5
    tables["env"] = {"name": "HardMaze-v0", "options": {"protocol": "uber"}}
    with pytest.raises(UserError, match='training.target = "solved": HardMaze-v0 defines no solved return'):
        make_config(tables)


@pytest.mark.parametrize(
    "env", [{"name": "Hopper-v5", "options": {"healthy_reward": 2.0}}, {"name": "Humanoid-v5"}]
)  # fmt: skip
def test_nobody_knows_what_solved_means_with_other_rewards(env):
    with pytest.raises(UserError, match=r"training.target = \"solved\": .*, expected a number"):
        make_config({**TABLES, "env": env, "training": {"generations": 1, "target": "solved"}})


@pytest.mark.parametrize("wrong", ["'great'", "true", "nan", "[1]"])
def test_a_target_is_a_number(wrong):
    with pytest.raises(UserError, match=r'training.target = .*: expected a finite number, or "solved"'):
        load_config("smoke", [f"training.target={wrong}"])


def test_a_target_is_no_budget():
    with pytest.raises(UserError, match="no budget"):
        make_config({"env": {"name": "pong"}, "training": {"target": 20}})


def test_a_real_run_is_solved(tmp_path):
    """Exit code 0 long before the budget is spent."""
    changes = (
        "env.name=InvertedPendulum-v5", "network.name=mlp", "network.hidden=[8]", "algorithm.population=60",
        "algorithm.parents=10", "algorithm.sigma=0.1", "training.generations=200", "training.target=solved",
        "training.max_episode_steps=1000", "training.validation_episodes=5", "training.test_episodes=20",
    )  # fmt: skip
    options = [word for change in changes for word in ("--set", change)]
    command = [sys.executable, "-m", "neuroevo", "train", "smoke", "--out", tmp_path / "run", "--seed", "1", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "reaches the target, 950" in done.stdout
    rows = read_rows(tmp_path / "run")
    assert len(rows) < 200 and rows[-1]["test_mean"] >= 950
