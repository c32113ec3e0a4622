"""Episodes that follow another one from the step at which both are in the same state."""

import numpy as np
import pytest

from experiments.benchmarks.replayed_generation import replay
from neuroevo.core.behavior import Behavior
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.envs import registry
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.sessions.folder import RunFolder
from tests.support.runs import config, results, train

SEEDS = [*range(16), 2**63 - 1, 10**18]
UBER = {"noop_max": 9}  # frames before the first step, 1 to 9


def played(evaluator, episodes):
    """The outcomes, and the number of steps that were played."""
    before = evaluator.work().steps
    found = evaluator.wait(evaluator.submit(episodes))
    return found, evaluator.work().steps - before


@pytest.mark.parametrize(
    ("name", "options", "network", "limits", "least"),
    [
        ("kangaroo", UBER, "model", (0,), 2),
        pytest.param("amidar", {"noop_max": 30}, "model", (0,), 4, marks=pytest.mark.thorough),
        ("breakout", {"noop_max": 0}, "model", (9, 15), 5),  # FIRE at the start
        ("seaquest", {"noop_max": 2, "behavior": [0, 127]}, "model", (40,), 2),
        ("ALE/Kangaroo-v5", {"repeat_action_probability": 0.0, "noop_max": 9, "frame_skip": 3}, "model", (0,), 2),
        ("hard_maze", {}, "mlp", (0, 50), 9),
        ("HardMaze-v0", {}, "mlp", (0, 50), 9),
    ],
)
def test_outcomes_equal_those_of_episodes_played_apart(name, options, network, limits, least):
    environment, behavior = registry.find(name, options), Behavior()
    genomes = Genome(1), Genome(1).child(2, 0.05)
    settings = {"lanes": 2, "slots": 5, "behavior": behavior}
    with (
        LocalEvaluator(environment, network, **settings) as evaluator,
        LocalEvaluator(environment, network, **settings, share_plays=False) as apart,
    ):
        for limit in limits:
            episodes = [Episode(genome, seed, limit) for genome in genomes for seed in SEEDS]
            found, steps = played(evaluator, episodes)
            expected, every = played(apart, episodes)
            for attribute in ("returns", "steps", "behaviors"):
                assert np.array_equal(getattr(found, attribute), getattr(expected, attribute)), attribute
            assert every == expected.steps.sum() == found.steps.sum()
            assert steps * least < every


@pytest.mark.parametrize("cut", [-1, 0, 1])
def test_episodes_that_are_cut_off_near_their_end(cut):
    """Some of the episodes that share a play are cut off, and others are not."""
    genome = Genome(1)
    with LocalEvaluator("kangaroo", "model", env_options=UBER, lanes=2, slots=4) as evaluator:
        length = int(evaluator.evaluate([Episode(genome, 0)]).steps[0])
        episodes = [Episode(genome, seed, length + cut) for seed in SEEDS]
        found = evaluator.evaluate(episodes)
    with LocalEvaluator("kangaroo", "model", env_options=UBER, share_plays=False) as evaluator:
        expected = evaluator.evaluate(episodes)
    assert np.array_equal(found.returns, expected.returns) and np.array_equal(found.steps, expected.steps)


@pytest.mark.parametrize(
    ("name", "options", "network", "behavior"),
    [
        ("breakout", {"repeat_action_probability": 0.25}, "model", Behavior()),
        ("breakout", {"noop_max": 0}, "model", Behavior(every=4, samples=2)),  # a trajectory
        ("breakout", {"noop_max": 0, "emulator": "ale"}, "model", Behavior()),
        ("chopper_command", {"noop_max": 0}, "model", Behavior()),  # ALE does not save the whole state
        ("InvertedPendulum-v5", {}, "mlp", None),
    ],
)
def test_episodes_that_are_all_played(name, options, network, behavior):
    with LocalEvaluator(registry.find(name, options), network, behavior=behavior) as evaluator:
        found, steps = played(evaluator, [Episode(Genome(0), seed, 9) for seed in SEEDS])
    assert steps == found.steps.sum()


def test_progress_counts_episodes_not_plays():
    reports = []
    with LocalEvaluator("frostbite", "model", threads=1) as evaluator:
        evaluator.evaluate([Episode(Genome(0), seed, 3) for seed in range(60)], lambda *report: reports.append(report))
    assert reports[-1] == (60, 180)


@pytest.mark.parametrize(
    ("env", "network", "test_episodes"),
    [({"name": "freeway", "options": {"noop_max": 5}}, "model", 0), ({"name": "hard_maze"}, "mlp", 40)],
)
def test_a_run_is_the_same_with_the_engine_that_shares_nothing(tmp_path, env, network, test_episodes):
    tables = {
        "algorithm": {"name": "ga", "population": 4, "parents": 2, "sigma": 0.1, "validation_candidates": 2},
        "training": {
            "generations": 3,
            "max_episode_steps": 30,
            "validation_episodes": 30,
            "test_episodes": test_episodes,
        },
        "env": env,
        "network": {"name": network},
    }
    for engine in ("native", "tensorflow"):
        train(RunFolder.create(tmp_path / engine, config(**tables, hardware={"engine": engine})))
    assert results(tmp_path / "native") == results(tmp_path / "tensorflow")


def test_a_recorded_generation_is_played_again(tmp_path):
    tables = {
        "algorithm": {"name": "ga", "population": 4, "parents": 2, "sigma": 0.1, "validation_candidates": 2},
        "training": {"generations": 2, "max_episode_steps": 5, "validation_episodes": 30, "test_episodes": 0},
        "env": {"name": "breakout", "options": {"noop_max": 0}},
    }
    train(RunFolder.create(tmp_path / "run", config(**tables)))
    phases = [replay(tmp_path / "run", 1, test_episodes=0)[phase] for phase in ("population", "validation", "test")]
    assert [phase["episodes"] for phase in phases] == [4, 60, 0]
    assert [phase["steps"] for phase in phases] == [20, 300, 0]
    assert phases[0]["played"] == 20 and 0 < phases[1]["played"] < 150 and phases[2]["played"] == 0


def test_submissions_share_plays_while_a_genome_is_played():
    """Also with other priorities and parents, but not with other cut-offs. Later it is played from the start again."""
    parent = Genome(1)
    genome = parent.child(2, 0.05)
    with LocalEvaluator("breakout", "model", env_options={"noop_max": 0}, lanes=1, slots=2) as evaluator:
        submissions = [(400, 1, [parent]), (400, 0, [genome]), (300, 1, []), (400, 0, None)]
        before = evaluator.work().steps
        batches = [
            evaluator.submit([Episode(genome, seed, limit)] * 3, priority, parents=parents)
            for seed, (limit, priority, parents) in enumerate(submissions)
        ]
        found = [evaluator.wait(batch).steps.tolist() for batch in batches]
        shared = evaluator.work().steps - before
        before = evaluator.work().steps
        expected = {limit: int(evaluator.evaluate([Episode(genome, 0, limit)]).steps[0]) for limit in (300, 400)}
        assert evaluator.work().steps - before == sum(expected.values())
        assert found == [[expected[limit]] * 3 for limit, _, _ in submissions]
        assert sum(expected.values()) <= shared < 2 * sum(expected.values())
