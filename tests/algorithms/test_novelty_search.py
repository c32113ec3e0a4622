"""GA-NS, NS-ES and NSR-ES: selection, archives, steps of centers, and a deceptive problem that only they solve."""

from dataclasses import replace

import numpy as np
import pytest

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.es import ES
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.ga_ns import GANS
from neuroevo.algorithms.ns_es import NSES, NSRES
from neuroevo.algorithms.optimizers import SGD, Adam
from neuroevo.algorithms.schedules import LinearSchedule
from neuroevo.core.behavior import Behavior
from neuroevo.core.genome import Center, Genome
from neuroevo.core.randomness import Purpose, draw_seeds, draw_uniforms
from neuroevo.core.state_codec import decode, encode
from tests.support.toy import ToyWeights, noise, theta

WEIGHTS = ToyWeights()
SEEKERS = {
    "ga_ns": GANS(population=40, parents=5, sigma=0.1, k=5, archive_probability=0.05, validation_candidates=2),
    "ns_es": NSES(population=20, sigma=0.1, optimizer=Adam(learning_rate=0.1), centers=3, k=3),
    "nsr_es": NSRES(population=20, sigma=0.1, optimizer=Adam(learning_rate=0.1), centers=3, k=3),
}


def generation(algorithm, state, fitness, behaviors, validation=None, rows=None, steps=100):
    """Return the states after tell() and tell_validation() for these results; validation results default to zeros."""
    genomes = algorithm.ask(state, WEIGHTS)
    told = algorithm.tell(
        state, EvaluatedPopulation(genomes, np.array(fitness, float), steps, np.array(behaviors, float)), WEIGHTS
    )
    candidates = algorithm.candidates(told)
    validation = np.zeros(len(candidates)) if validation is None else np.array(validation, float)
    rows = np.zeros((len(candidates), np.shape(behaviors)[1])) if rows is None else np.array(rows, float)
    return told, algorithm.tell_validation(told, EvaluatedPopulation(candidates, validation, 10, rows))


def test_the_papers_settings():
    assert (GANS().k, GANS().archive_probability, NSES().k, NSES().reward_weight) == (25, 0.01, 10, 0.0)
    assert NSRES().reward_weight == 0.5
    assert (NSES().sigma, NSES().optimizer, NSES().weight_decay) == (0.02, Adam(learning_rate=0.01), 0.005)
    for kind in (GANS, NSES, NSRES):
        assert kind().behavior == Behavior()
        assert kind(trajectory_every=20, trajectory_samples=250).behavior == Behavior(20, 250)
        with pytest.raises(ValueError, match="trajectory_samples = 5: expected 1 "):
            kind(trajectory_samples=5)


# GA-NS


def test_parents_are_the_most_novel_and_the_elite_is_the_fittest():
    ga = GANS(population=5, parents=2, k=2, archive_probability=0.0, validation_candidates=2)
    state = ga.init(0)
    genomes = ga.ask(state)
    # Means of the two smallest distances: 1.5, 1, 1.5, 6 and 4.
    told, after = generation(ga, state, [9, 8, 0, 0, 0], [[0], [1], [2], [10], [6]], validation=[1, 3])
    assert ga.candidates(told) == genomes[:2]
    assert after.parents == (genomes[3], genomes[4])
    assert ga.elite(after) == genomes[1]
    assert not after.archive
    assert (after.generation, after.steps) == (1, 110)
    assert ga.best(after) == [genomes[1], genomes[3], genomes[4]]
    found = ga.metrics(state, after)
    assert found == {"sigma": np.float32(0.002), "novelty_mean": 2.8, "novelty_max": 6.0}
    assert len(ga.archive(after)) == 0
    assert {child.parent for child in ga.ask(after)} <= set(after.parents)


def test_the_most_novel_competes_again_with_the_behavior_it_had():
    ga = GANS(population=3, parents=1, k=1, archive_probability=0.0, validation_candidates=2)
    _, first = generation(ga, ga.init(0), [0, 0, 0], [[0], [1], [50]])
    (leader,) = first.parents
    _, second = generation(ga, first, [0, 0, 0], [[0], [1], [2]])
    assert second.parents == (leader,)
    children = ga.ask(second)
    told, third = generation(ga, second, [0, 0, 0], [[50], [90], [51]])  # it is not new any more
    assert third.parents == (children[1],)
    # Nearest to 50, 90, 51 and the old one's 50: 0, 39, 1 and 0. The last is not of this generation.
    assert (told.mean_novelty, told.max_novelty) == (pytest.approx(40 / 3), 39.0)
    _, fourth = generation(ga, third, [0, 0, 0], [[90], [90], [90]])
    assert fourth.parents == (children[1],)  # the older genome wins ties


def test_the_archive_makes_what_was_there_old():
    ga = GANS(population=4, parents=1, k=1, archive_probability=1.0, validation_candidates=2)
    _, first = generation(ga, ga.init(0), [0] * 4, [[0], [10], [20], [100]])
    assert first.archive.behaviors.tolist() == [[0], [10], [20], [100]]
    assert first.archive.behaviors.dtype == np.uint8
    children = ga.ask(first)
    _, second = generation(ga, first, [0] * 4, [[99], [11], [60], [0]])
    assert second.parents == (children[2],)
    assert second.archive.behaviors.ravel().tolist() == [0, 10, 20, 100, 99, 11, 60, 0]
    assert len(ga.archive(second)) == 8


def test_who_enters_the_archive_follows_from_seed_generation_and_index():
    ga = GANS(population=1000, parents=1, archive_probability=0.05, archive_limit=80, validation_candidates=2)
    behaviors = np.arange(1000.0)[:, None] + 0.5
    first, second = (generation(ga, replace(ga.init(7), generation=g), [0] * 1000, behaviors)[1] for g in (0, 1))
    drawn = np.flatnonzero(draw_uniforms(1000, 7, 0, Purpose.ARCHIVE) < 0.05)
    assert 25 < len(drawn) < 80  # 50 +- 7
    assert first.archive.behaviors.ravel().tolist() == (drawn + 0.5).tolist()
    assert first.archive.behaviors.tolist() != second.archive.behaviors.tolist()
    # Half of them: the same ones of that half. The limit keeps the newest.
    half = replace(ga, population=500)
    of_half = generation(half, half.init(7), [0] * 500, behaviors[:500])[1].archive.behaviors
    assert of_half.max() < 500
    assert np.isin(of_half, first.archive.behaviors).all()
    _, later = generation(ga, replace(first, generation=1), [0] * 1000, behaviors)
    both = np.concatenate([first.archive.behaviors, second.archive.behaviors])
    assert later.archive.behaviors.tolist() == both[-80:].tolist()


def test_genomes_whose_episodes_failed_are_the_least_novel():
    ga = GANS(population=4, parents=3, k=1, archive_probability=1.0, validation_candidates=2)
    genomes = ga.ask(ga.init(0))
    nan = [np.nan, np.nan]
    told, after = generation(ga, ga.init(0), [0] * 4, [nan, [1, 1], [1, 1], [1, 1]])
    assert after.parents == (genomes[1], genomes[2], genomes[3])  # though their novelty is 0
    assert after.archive.behaviors.tolist() == [[1, 1]] * 3
    assert (told.mean_novelty, told.max_novelty) == (0.0, 0.0)
    _, nothing = generation(ga, ga.init(0), [0] * 4, [nan] * 4)
    assert not nothing.archive
    assert nothing.leader is None
    assert len(ga.ask(nothing)) == 4


def test_ga_ns_starts_from_genomes():
    ga = GANS(population=6, parents=2, validation_candidates=2)
    given = [Genome(1), Genome(2), Genome(3)]
    state = ga.init(0, given)
    assert ga.elite(state) == given[0]
    assert {child.parent for child in ga.ask(state)} == set(given[:2])
    told, _ = generation(ga, state, range(6), np.zeros((6, 1)))
    assert ga.candidates(told)[0] == given[0]


# NS-ES and NSR-ES


def begun(algorithm, behaviors, validation=(1, 2, 3), seed=0):
    """Return the state after generation 0 with these behaviors of the centers."""
    zeros = np.zeros((len(behaviors), np.shape(behaviors)[1]))
    return generation(algorithm, algorithm.init(seed), np.zeros(len(behaviors)), zeros, validation, behaviors)[1]


def test_the_first_generation_plays_the_centers():
    es = SEEKERS["ns_es"]
    state = es.init(5)
    assert es.ask(state, WEIGHTS) == list(state.centers)
    assert len(set(state.centers)) == 3
    told, after = generation(es, state, [0] * 3, np.zeros((3, 2)), [1, 7, 3], [[0, 0], [3, 4], [9, 9]])
    assert es.candidates(told) == list(after.centers) == list(state.centers)
    assert es.elite(after) == state.centers[1]
    assert after.archive.behaviors.tolist() == [[0, 0], [3, 4], [9, 9]]
    assert [row.tolist() for row in after.behaviors] == after.archive.behaviors.tolist()
    assert (after.generation, after.steps) == (1, 110)
    pairs = es.ask(after, WEIGHTS)
    seeds = draw_seeds(10, 5, 1, Purpose.PAIRS)
    assert pairs[::2] == [after.centers[after.chosen].child(seed, float(np.float32(0.1))) for seed in seeds]
    assert pairs[1::2] == [after.centers[after.chosen].child(seed, -float(np.float32(0.1))) for seed in seeds]


@pytest.mark.parametrize(("kind", "share"), [(NSES, 0.0), (NSRES, 0.5)])
def test_a_step_by_hand(kind, share):
    es = kind(
        population=4, sigma=0.1, optimizer=SGD(learning_rate=0.5, momentum=0.0), weight_decay=0.25, centers=2, k=2
    )
    state = begun(es, [[0.0], [10.0]], validation=(1, 2))
    center = state.centers[state.chosen]
    one, two = draw_seeds(2, 0, 1, Purpose.PAIRS)
    # Mean distances to the archive's two: 5, 7, 5, 15. Ranks 0.5, 2, 0.5, 3 of 3, centered; returns' are 3, 2, 1, 0.
    ranks = (1 - share) * (np.array([0.5, 2, 0.5, 3]) / 3 - 0.5) + share * (np.array([3, 2, 1, 0]) / 3 - 0.5)
    told, after = generation(es, state, [40, 30, 20, 10], [[1], [12], [9], [20]], [9], [[30.0]])
    gradient = ((ranks[0] - ranks[1]) * noise(one) + (ranks[2] - ranks[3]) * noise(two)) / 4
    expected = theta(center) + 0.5 * (gradient - 0.25 * theta(center))
    moved = told.centers[state.chosen]
    np.testing.assert_allclose(moved.root.vector, expected, rtol=1e-5, atol=1e-6)
    assert es.candidates(told) == [moved]
    assert told.centers[1 - state.chosen] == state.centers[1 - state.chosen]
    assert told.optimizers[1 - state.chosen] is None
    assert told.optimizers[state.chosen].steps == 1
    assert after.archive.behaviors.ravel().tolist() == [0, 10, 30]
    assert after.behaviors[state.chosen].tolist() == [30]
    assert es.elite(after) == moved
    found = es.metrics(state, after)
    assert (found["novelty_mean"], found["novelty_max"], len(es.archive(after))) == (8.0, 15.0, 3)
    assert found["center"] == state.chosen


def test_the_centers_archive_keeps_the_newest():
    es = NSES(population=2, centers=2, k=5, archive_limit=3)
    state = begun(es, [[0.0], [10.0]], validation=(1, 2))
    for new, expected in ((20.0, [0, 10, 20]), (30.0, [10, 20, 30])):
        _, state = generation(es, state, [0, 0], [[1], [2]], [0], [[new]])
        assert state.archive.behaviors.ravel().tolist() == expected


def test_equal_novelty_and_no_l2_move_nothing():
    es = NSES(population=4, weight_decay=0.0, centers=2, k=1)
    state = begun(es, [[0.0], [10.0]], validation=(1, 2))
    told, _ = generation(es, state, [4, 3, 2, 1], [[1], [1], [1], [1]])
    np.testing.assert_array_equal(told.centers[state.chosen].root.vector, WEIGHTS.theta(state.centers[state.chosen]))


def test_centers_play_as_often_as_they_are_novel():
    es = NSES(centers=3, k=2)
    # Their own entries count, as in the paper's code: (0 + 3) / 2, (0 + 3) / 2 and (0 + 6) / 2.
    chosen = [begun(es, [[0.0], [3.0], [9.0]], seed=seed).chosen for seed in range(1000)]
    np.testing.assert_allclose(np.bincount(chosen) / 1000, [0.25, 0.25, 0.5], atol=0.055)  # 3.5 standard deviations
    alike = [begun(es, [[1.0], [1.0], [1.0]], seed=seed).chosen for seed in range(400)]
    np.testing.assert_allclose(np.bincount(alike) / 400, [1 / 3] * 3, atol=0.085)
    failed = [begun(es, [[0.0], [np.nan], [9.0]], seed=seed) for seed in range(50)]
    assert {state.chosen for state in failed} == {0, 2}
    assert all(len(state.archive) == 2 for state in failed)
    told, _ = generation(es, failed[0], np.arange(5000), np.ones((5000, 1)))
    assert es.candidates(told) == [c for i, c in enumerate(told.centers) if i in (1, failed[0].chosen)]


def test_each_generation_draws_its_center():
    es = NSES(population=2, centers=3, k=1)
    state, expected = begun(es, [[1.0], [1.0], [1.0]], seed=4), []
    chosen = [state.chosen]
    for _ in range(11):
        _, state = generation(es, state, [0, 0], [[1], [1]], [0], [[1.0]])
        chosen.append(state.chosen)
    for number in range(1, 13):  # all alike: a third of [0, 1) is each one's
        expected.append(int(3 * draw_uniforms(1, 4, number, Purpose.CENTERS)[0]))
    assert chosen == expected
    assert set(chosen) == {0, 1, 2}


def test_pairs_that_failed_are_the_least_novel_and_count_for_no_mean():
    es = NSES(population=4, optimizer=SGD(learning_rate=1.0, momentum=0.0), weight_decay=0.0, centers=1, k=1)
    state = begun(es, [[0.0]], validation=[1])
    one, two = draw_seeds(2, 0, 1, Purpose.PAIRS)
    told, _ = generation(es, state, [0] * 4, [[np.nan], [0], [2], [4]])
    assert (told.mean_novelty, told.max_novelty) == (2.0, 4.0)
    moved = told.centers[0].root.vector - theta(state.centers[0])
    np.testing.assert_allclose(moved, -(noise(one) + noise(two)) / 3 / 4, rtol=1e-5, atol=1e-6)


def test_a_moved_center_stays_of_its_network_and_sigma_follows_its_schedule():
    es = NSES(population=2, sigma=LinearSchedule(0.5, 0.25, 2), centers=1, k=1)
    state = es.init(0, [Genome(3, network=1)])
    _, state = generation(es, state, [0], [[0]], [1], [[0.0]])
    assert [scale for genome in es.ask(state, WEIGHTS) for _, scale, _ in genome.mutations] == [0.375, -0.375]
    told, after = generation(es, state, [0, 1], [[1], [2]])
    assert told.centers[0].network == 1
    assert es.metrics(state, after)["sigma"] == 0.375


def test_the_elite_is_the_best_of_all_generations():
    es = NSES(population=2, centers=1, k=1)
    state = begun(es, [[0.0]], validation=[5])
    first = es.elite(state)
    _, state = generation(es, state, [0, 0], [[1], [2]], [4], [[1.0]])
    assert es.elite(state) == first
    _, state = generation(es, state, [0, 0], [[1], [2]], [5], [[2.0]])  # no better
    assert es.elite(state) == first
    _, state = generation(es, state, [0, 0], [[1], [2]], [6], [[3.0]])
    assert es.elite(state) == state.centers[0]
    assert es.best(state) == [state.centers[0]]


def test_ns_es_starts_from_genomes():
    es = SEEKERS["nsr_es"]
    given = [Genome(Center(np.ones(8))), Genome(4).child(5, 0.5)]
    state = es.init(3, given)
    assert list(state.centers[:2]) == given
    assert state.centers[2] == es.init(3).centers[2]
    assert es.elite(state) == given[0]
    assert es.elite(begun(replace(es), [[0.0], [1.0], [2.0]])) is not None


# Both


@pytest.mark.parametrize("name", SEEKERS)
def test_behaviors_must_be_recorded(name):
    algorithm = SEEKERS[name]
    state = algorithm.init(0)
    genomes = algorithm.ask(state, WEIGHTS)
    with pytest.raises(ValueError, match="no behaviors"):
        algorithm.tell(state, EvaluatedPopulation(genomes, np.zeros(len(genomes))), WEIGHTS)


def play(genomes, height):
    """Walk along a line: theta's first weight is the end position, and its `height` is the fitness."""
    ends = np.array([theta(genome)[0] for genome in genomes])
    return EvaluatedPopulation(genomes, height(ends), len(genomes), ends[:, None])


def trap(ends):
    """Return 1 at local optima at 1 and -1, values that decrease beyond them, and 10 from 5 on, in both directions."""
    away = np.abs(ends)
    return np.where(away >= 5, 10.0, np.where(away <= 1, away, 2 - away))


def search(algorithm, generations, seed, state=None):
    """Return the state after this number of generations on the deceptive problem."""
    state = algorithm.init(seed) if state is None else state
    for _ in range(generations):
        state = algorithm.tell(state, play(algorithm.ask(state, WEIGHTS), trap), WEIGHTS)
        candidates = algorithm.candidates(state)
        state = algorithm.tell_validation(state, play(candidates, trap))
    return state


def reached(algorithm, generations, seed):
    elite = algorithm.elite(search(algorithm, generations, seed))
    return float(play([elite], trap).fitness[0])


@pytest.mark.parametrize("seed", range(2))
def test_novelty_leaves_a_trap_in_which_fitness_stays(seed):
    ga = GA(population=40, parents=5, sigma=0.1, validation_candidates=2)
    es = ES(population=20, sigma=0.1, optimizer=Adam(learning_rate=0.1))
    assert 0.9 < reached(ga, 80, seed) <= 1.0
    assert 0.5 < reached(es, 80, seed) <= 1.0
    assert reached(SEEKERS["ga_ns"], 80, seed) == 10.0
    assert reached(SEEKERS["ns_es"], 150, seed) == 10.0


@pytest.mark.parametrize("name", SEEKERS)
def test_a_state_survives_a_checkpoint_at_any_moment(name):
    algorithm, state = SEEKERS[name], None
    for _ in range(5):
        state = search(algorithm, 1, 3, state)
        (again,) = decode(encode(state), algorithm.state_type)
        told = algorithm.tell(state, play(algorithm.ask(state, WEIGHTS), trap), WEIGHTS)
        (told_again,) = decode(encode(told), algorithm.state_type)
        assert algorithm.ask(again, WEIGHTS) == algorithm.ask(state, WEIGHTS)
        assert algorithm.candidates(told_again) == algorithm.candidates(told)
        here, there = search(algorithm, 2, 3, state), search(algorithm, 2, 3, again)
        assert algorithm.best(here) == algorithm.best(there)
        np.testing.assert_array_equal(here.archive.behaviors, there.archive.behaviors)
        assert not here.archive or here.archive.behaviors.dtype == there.archive.behaviors.dtype
