"""Episodes that start in the same state, of which the driver of a cluster sends one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.core.episode import Batch, Episode, EpisodeResults, shared_plays
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.envs import registry
from neuroevo.envs.vector import make_vec


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


def test_episodes_with_random_numbers_are_all_sent():
    assert registry.find("pong", {"repeat_action_probability": 0.25}).starts([1, 2]) is None
    assert registry.find("InvertedPendulum-v5").starts([1, 2]) is None
    assert registry.find("hard_maze").starts([1, 2]) == [0, 0]
