"""RunFolder.fork: a run that continues from another run's checkpoint with a changed configuration."""

import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import checkpoints_of, info_of, query, read_elites, read_rows
from tests.support.runs import config, contents, interrupted_run, new_run, play, results
from tests.support.toy import ToyEvaluator, call_of

ES = {"name": "es", "population": 8, "sigma": 0.2}
NS_ES = {"name": "ns_es", "population": 4, "sigma": 0.2, "centers": 2, "k": 3}


@pytest.mark.parametrize("algorithm", [{"sigma": 0.2}, ES, NS_ES])
def test_without_changes_it_is_the_same_run(tmp_path, algorithm):
    new_run(tmp_path / "whole", algorithm=algorithm, checkpoints={"keep_last": 9})
    play(RunFolder.fork(tmp_path / "fork", tmp_path / "whole", generation=3))
    assert results(tmp_path / "fork") == results(tmp_path / "whole")


def test_it_begins_with_the_other_run_and_goes_on_with_its_own_values(tmp_path):
    new_run(tmp_path / "first", checkpoints={"keep_last": 9})
    before = contents(tmp_path / "first")
    changes = ["algorithm.sigma=0.5", "algorithm.population=12", "training.seed=8", "training.test_episodes=3"]
    toy = ToyEvaluator()
    play(RunFolder.fork(tmp_path / "fork", tmp_path / "first", changes, generation=2), toy)
    assert contents(tmp_path / "first") == before
    first, rows = read_rows(tmp_path / "first"), read_rows(tmp_path / "fork")
    assert rows[:2] == first[:2]
    assert read_elites(tmp_path / "fork")[:2] == read_elites(tmp_path / "first")[:2]
    members = "SELECT members.*, digest FROM members JOIN genomes ON id = genome WHERE members.generation < 2"
    assert query(tmp_path / "fork", members) == query(tmp_path / "first", members)
    assert [row["generation"] for row in rows] == [0, 1, 2, 3, 4]
    assert {row["sigma"] for row in rows[2:]} == {0.5}
    assert {len(row["fitness"]) for row in rows[2:]} == {12}
    parents = RunReader(tmp_path / "first").state(2).algorithm.parents
    assert {episode.genome.parent for episode in toy.calls[0]} <= set(parents)
    assert RunReader(tmp_path / "fork").state().algorithm.seed == 8
    assert checkpoints_of(tmp_path / "fork")[0] >= 2


def test_a_seed_of_its_own_plays_other_episodes(tmp_path):
    new_run(tmp_path / "first", checkpoints={"keep_last": 9})
    played = {}
    for seed in (8, 9):
        toy = ToyEvaluator()
        play(RunFolder.fork(tmp_path / str(seed), tmp_path / "first", [f"training.seed={seed}"], generation=2), toy)
        played[seed] = {episode.seed for episode in toy.played(0, "population")}
        assert RunReader(tmp_path / str(seed)).state().algorithm.seed == seed
        assert info_of(tmp_path / str(seed))["seed"] == seed
    assert played[8].isdisjoint(played[9])


def test_pending_tests_are_played_anew_with_the_new_seed_and_number(tmp_path):
    path = tmp_path / "first"
    with pytest.raises(KeyboardInterrupt):
        new_run(path, ToyEvaluator(late=1, interrupt_at=call_of(2, "population")))
    (pending,) = RunReader(path).state().pending
    play(RunFolder.fork(tmp_path / "fork", path, ["training.test_episodes=5", "training.seed=8"]))
    whole = tmp_path / "whole"
    play(RunFolder.fork(whole, path, ["training.test_episodes=5", "training.seed=8"]))
    row = read_rows(tmp_path / "fork")[pending.record.generation]
    assert row["steps_test"] > 0
    assert results(tmp_path / "fork") == results(whole)


@pytest.mark.parametrize("algorithm", [{"sigma": 0.2}, ES])
def test_it_is_resumed_bit_for_bit(tmp_path, algorithm):
    interrupted_run(tmp_path / "first", 2, algorithm=algorithm)
    changes = ["algorithm.sigma=0.5", "training.seed=8"]
    play(RunFolder.fork(tmp_path / "whole", tmp_path / "first", changes))
    for interrupted in ("population", "test"):
        fork = tmp_path / interrupted
        folder = RunFolder.fork(fork, tmp_path / "first", changes)
        with pytest.raises(KeyboardInterrupt):
            play(folder, ToyEvaluator(interrupt_at=3 if interrupted == "population" else 2))
        play(RunFolder.resume(fork))
        assert results(fork) == results(tmp_path / "whole")


def test_its_provenance(tmp_path):
    interrupted_run(tmp_path / "first", 3)
    play(RunFolder.fork(tmp_path / "second", tmp_path / "first", ["algorithm.sigma=0.5"]))
    play(RunFolder.fork(tmp_path / "third", tmp_path / "second", ["training.generations=7", "training.seed=1"]))
    second, third = info_of(tmp_path / "second")["forked_from"], info_of(tmp_path / "third")["forked_from"]
    assert second == {"path": str(tmp_path / "first"), "generation": 3, "changes": {"algorithm.sigma": [0.2, 0.5]}}
    assert third["path"] == str(tmp_path / "second") and third["generation"] == 5
    assert third["changes"] == {"training.generations": [5, 7], "training.seed": [4, 1]}
    assert third["forked_from"] == second


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"env": {"name": "pong"}}, "env.name"),
        ({"env": {"options": {"frame_skip": 3}}}, "env.options"),
        ({"network": {"name": "large_model"}}, "network.name"),
        ({"algorithm": {"name": "random_search"}}, "algorithm.name"),
        ({"training": {"start_from": "elsewhere"}}, "training.start_from"),
    ],
)
def test_what_cannot_change(tmp_path, changes, key):
    interrupted_run(tmp_path / "first", 1)
    with pytest.raises(ConfigError) as raised:
        RunFolder.fork(tmp_path / "fork", tmp_path / "first", config=config(**changes))
    assert key in [problem.key for problem in raised.value.problems]
    assert not (tmp_path / "fork").exists()


@pytest.mark.parametrize(
    ("algorithm", "change", "key"),
    [
        (ES, {"optimizer": {"type": "sgd", "learning_rate": 0.1}}, "algorithm.optimizer"),
        (NS_ES, {"centers": 3}, "algorithm.centers"),
        (NS_ES, {"trajectory_every": 2, "trajectory_samples": 3}, "algorithm.trajectory_every"),
    ],
)
def test_what_shapes_the_state_cannot_change(tmp_path, algorithm, change, key):
    new_run(tmp_path / "first", algorithm=algorithm, training={"generations": 1})
    with pytest.raises(ConfigError) as raised:
        RunFolder.fork(tmp_path / "fork", tmp_path / "first", config=config(algorithm={**algorithm, **change}))
    assert key in [problem.key for problem in raised.value.problems]


def test_another_learning_rate_and_weight_decay(tmp_path):
    interrupted_run(tmp_path / "first", 2, algorithm=ES)
    changed = {**ES, "optimizer": {"type": "adam", "learning_rate": 0.3}, "weight_decay": 0.1, "population": 12}
    play(RunFolder.fork(tmp_path / "fork", tmp_path / "first", config=config(algorithm=changed)))
    number, elite = RunReader(tmp_path / "fork").elite()
    assert number == 4 and np.isfinite(elite.genome.root.vector).all()


def test_another_cut_off_starts_anew(tmp_path):
    interrupted_run(tmp_path / "first", 2, training={"max_episode_steps": 20})
    fork = RunFolder.fork(tmp_path / "fork", tmp_path / "first", ["training.max_episode_steps=15"])
    assert fork.state.max_episode_steps == 15


def test_no_such_checkpoint_or_run(tmp_path):
    interrupted_run(tmp_path / "first", 2)
    with pytest.raises(UserError, match="after generation 7 .* is missing .*: 0, 1, 2[)]"):
        RunFolder.fork(tmp_path / "fork", tmp_path / "first", generation=7)
    with pytest.raises(UserError, match="no run"):
        RunFolder.fork(tmp_path / "fork", tmp_path / "nothing")
    with pytest.raises(UserError, match="already holds a run"):
        RunFolder.fork(tmp_path / "first", tmp_path / "first")


@pytest.mark.parametrize("algorithm", [{"sigma": 0.2}, ES])
def test_a_run_that_goes_on_while_it_is_forked(tmp_path, algorithm):
    """The source deletes the state from which the fork continues, before the fork is written."""
    path = interrupted_run(tmp_path / "first", 2, algorithm=algorithm)
    play(RunFolder.fork(tmp_path / "whole", path, ["training.seed=8"]))
    fork = RunFolder.fork(tmp_path / "fork", path, ["training.seed=8"])
    play(RunFolder.resume(path, ["checkpoints.keep_last=1"]))
    assert checkpoints_of(path) == [5]
    play(fork)
    assert results(tmp_path / "fork") == results(tmp_path / "whole")


def test_a_fork_has_the_reference_batch_that_its_genomes_were_selected_with(tmp_path):
    interrupted_run(tmp_path / "first", 2, network={"name": "virtual_bn"})
    play(RunFolder.fork(tmp_path / "fork", tmp_path / "first", ["training.seed=8"]))
    batch = RunReader(tmp_path / "first").reference_batch()
    assert np.array_equal(RunReader(tmp_path / "fork").reference_batch(), batch)
    assert info_of(tmp_path / "fork")["seed"] == 8


def test_a_fork_goes_on_with_the_statistics_of_observations(tmp_path):
    maze = {"env": {"name": "HardMaze-v0"}, "network": {"name": "mlp", "hidden": [4], "normalize_observations": True}}
    new_run(tmp_path / "whole", checkpoints={"keep_last": 9}, **maze)
    play(RunFolder.fork(tmp_path / "fork", tmp_path / "whole", generation=3))
    assert results(tmp_path / "fork") == results(tmp_path / "whole")
