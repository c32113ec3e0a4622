"""Episodes that are identical although their seeds differ, which evaluators play once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.benchmarks.replayed_generation import replay
from neuroevo.core.behavior import Behavior
from neuroevo.core.episode import Batch, Episode, EpisodeResults, shared_plays
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.envs import registry
from neuroevo.envs.atari import AtariGame
from neuroevo.envs.hard_maze import Maze
from neuroevo.envs.vector import make_vec
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.sessions.folder import RunFolder
from tests.support.runs import config, results, train

SEEDS = [*range(12), 2**63 - 1, 2**62, 10**18]


@pytest.mark.parametrize(
    ("name", "options", "network", "different"),
    [
        ("frostbite", {"noop_max": 3}, "model", 3),
        ("seaquest", {"noop_max": 2, "behavior": [0, 127]}, "model", 2),
        ("breakout", {"noop_max": 0}, "model", 1),  # FIRE at the start
        ("ALE/Pong-v5", {"repeat_action_probability": 0.0, "noop_max": 4, "frame_skip": 3}, "model", 4),
        ("hard_maze", {}, "mlp", 1),
    ],
)
def test_outcomes_equal_those_of_episodes_that_are_all_played(monkeypatch, name, options, network, different, engine):
    environment, behavior = registry.find(name, options), Behavior(every=4, samples=2)
    genomes = Genome(1), Genome(1).child(2, 0.5)
    episodes = [Episode(genome, seed, steps) for genome in genomes for steps in (9, 15) for seed in SEEDS]
    with LocalEvaluator(environment, network, lanes=2, slots=3, engine=engine, behavior=behavior) as evaluator:
        batch = evaluator.submit(episodes)
        found = evaluator.wait(batch)
        steps = evaluator.work().steps
        monkeypatch.setattr(type(environment), "starts", lambda *_: None)
        expected = evaluator.evaluate(episodes)
        assert evaluator.work().steps - steps == expected.steps.sum()
    monkeypatch.undo()
    for attribute in ("returns", "steps", "behaviors"):
        assert np.array_equal(getattr(found, attribute), getattr(expected, attribute))
    played, plays = shared_plays(episodes, environment.starts([each.seed for each in episodes]))
    assert batch.plays == len(played) == 4 * different
    assert steps == sum(found.steps[np.flatnonzero(plays == each)[0]] for each in range(len(played)))


def test_episodes_with_random_numbers_are_all_played():
    with LocalEvaluator("pong", "model", env_options={"repeat_action_probability": 0.25}) as sticky:
        assert sticky.submit([Episode(Genome(0), seed, 5) for seed in range(40)]).plays == 40
    with LocalEvaluator("InvertedPendulum", "mlp") as robot:
        assert robot.submit([Episode(Genome(0), 1, 5)] * 3).plays == 3


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=6), st.sampled_from([0, 1, 7, 30, 1000]))
def test_starts_of_a_game_are_its_emulators_first_frames(seeds, noop_max):
    # The frame skip does not matter, and Pong has no FIRE at the start in Gymnasium's protocol.
    options = {"protocol": "gymnasium", "noop_max": noop_max}
    environment = registry.find("pong", options)
    env = make_vec("pong", len(seeds), num_threads=1, **options)
    _, infos = env.reset(seed=seeds)
    env.close()
    assert environment.starts(seeds) == infos["episode_frame_number"].tolist()


def test_episodes_share_plays_only_if_all_but_their_seeds_are_equal():
    genomes = [Genome(1), Genome(2), Genome(1).child(1, 0.1), Genome(1).child(1, 0.2), Genome(1, network=1)]
    normalizers = [Normalizer(number, np.zeros(2), np.ones(2)) for number in (0, 1)]
    episodes = [Episode(genome, seed, 9) for genome in genomes for seed in (3, 4)]
    episodes += [Episode(genomes[0], 5, 10), *(Episode(genomes[0], 5, 9, each) for each in normalizers)]
    played, plays = shared_plays(episodes, [0] * len(episodes))
    assert plays.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7]
    assert played == [*episodes[:10:2], *episodes[10:]]
    assert shared_plays(episodes[:2], [7, 8])[0] == episodes[:2]
    assert shared_plays(episodes, None) == (episodes, None)


@given(st.lists(st.integers(0, 6), max_size=30), st.randoms(use_true_random=False), st.integers(1, 5))
def test_a_batch_books_the_results_of_a_play_for_all_of_its_episodes(starts, random, size):
    calls = []
    episodes = [Episode(Genome(0), seed) for seed in range(len(starts))]
    played, plays = shared_plays(episodes, starts)
    batch = Batch(len(episodes), 1, np.float64, calls.append, plays)
    order = random.sample(range(len(played)), len(played))
    for at in range(0, len(order), size):
        ids = np.array(order[at : at + size])
        failures = ["broken" if each % 3 == 0 else "" for each in ids]
        booked = batch.book(
            EpisodeResults(ids, ids + 0.5, ids + 1, failures, np.zeros((len(ids), 0)), ids[:, None] + 0.0)
        )
        assert booked is calls[-1]
        assert sorted(booked.ids) == [each for each, play in enumerate(plays) if play in ids]
        assert batch.plays_left == len(order[at + size :])
        assert batch.left == sum(play in order[at + size :] for play in plays)
    assert (batch.left, batch.plays_left, batch.plays) == (0, 0, len(set(starts)))
    assert sorted(index for each in calls for index in each.ids) == list(range(len(starts)))
    outcomes = batch.outcomes
    assert outcomes.returns.tolist() == [play + 0.5 for play in plays]
    assert outcomes.steps.tolist() == [play + 1 for play in plays]
    assert outcomes.behaviors[:, 0].tolist() == plays.tolist()
    assert sorted(outcomes.failures) == [each for each, play in enumerate(plays) if play % 3 == 0]


def test_progress_counts_episodes_not_plays():
    reports = []
    with LocalEvaluator("frostbite", "model", threads=1) as evaluator:
        evaluator.evaluate([Episode(Genome(0), seed, 3) for seed in range(60)], lambda *report: reports.append(report))
    assert reports[-1] == (60, 180)


@pytest.mark.parametrize(
    ("family", "env", "test_episodes"),
    [
        (AtariGame, {"name": "freeway", "options": {"noop_max": 5}}, 0),
        (Maze, {"name": "hard_maze"}, 40),
    ],
)
def test_a_run_is_the_same_if_all_episodes_are_played(tmp_path, monkeypatch, family, env, test_episodes):
    tables = {
        "algorithm": {"name": "ga", "population": 4, "parents": 2, "sigma": 0.1, "validation_candidates": 2},
        "training": {
            "generations": 3,
            "max_episode_steps": 30,
            "validation_episodes": 30,
            "test_episodes": test_episodes,
        },
        "env": env,
        "network": {"name": "model" if family is AtariGame else "mlp"},
    }
    train(RunFolder.create(tmp_path / "shared", config(**tables)))
    monkeypatch.setattr(family, "starts", lambda *_: None)
    train(RunFolder.create(tmp_path / "all", config(**tables)))
    assert results(tmp_path / "shared") == results(tmp_path / "all")


def test_a_recorded_generation_is_played_again(tmp_path):
    tables = {
        "algorithm": {"name": "ga", "population": 4, "parents": 2, "sigma": 0.1, "validation_candidates": 2},
        "training": {"generations": 2, "max_episode_steps": 5, "validation_episodes": 30, "test_episodes": 0},
        "env": {"name": "breakout", "options": {"noop_max": 4}},
    }
    train(RunFolder.create(tmp_path / "run", config(**tables)))
    shared, every = replay(tmp_path / "run", 1, test_episodes=0)
    assert (shared["shared plays"], every["shared plays"]) == (True, False)
    counts = [[each[phase]["episodes"] for phase in ("population", "validation", "test")] for each in (shared, every)]
    assert counts == [[4, 60, 0]] * 2
    steps = [[each[phase]["steps"] for phase in ("population", "validation", "test")] for each in (shared, every)]
    assert steps == [[20, 40, 0], [20, 300, 0]]
