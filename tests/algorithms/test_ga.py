"""The GA and random search: selection, elite and offspring."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.random_search import RandomSearch
from neuroevo.algorithms.selection import pick_candidates, pick_elite, ranking
from neuroevo.config.schema import Training
from neuroevo.core.genome import Genome
from neuroevo.training.loop import train
from tests.support.toy import TARGET, ToyEvaluator, theta

SCALE = float(np.float32(0.002))


def told(ga, state, fitness, validation):
    """Run one generation with the given fitness, [N], and validation means, [C]."""
    genomes = ga.ask(state)
    state = ga.tell(state, EvaluatedPopulation(genomes, np.array(fitness), 90))
    candidates = ga.candidates(state)
    return ga.tell_validation(state, EvaluatedPopulation(candidates, np.array(validation), 10)), genomes, candidates


def test_paper_settings_are_the_defaults():
    assert GA() == GA(population=1000, parents=20, sigma=0.002, validation_candidates=10)
    assert RandomSearch() == RandomSearch(population=1000, validation_candidates=10)


def test_generation_0_is_fresh_and_each_genome_has_its_own_seed():
    ga = GA()
    genomes = ga.ask(ga.init(0))
    assert len({genome.root for genome in genomes}) == 1000
    assert all(genome.mutations == () for genome in genomes)
    assert genomes[0] == Genome(7473177352646595959)


def test_offspring_are_one_mutation_of_a_parent():
    ga = GA(population=500, parents=5)
    state, genomes, _ = told(ga, ga.init(3), np.arange(500.0), [0.0] * 10)
    children = ga.ask(state)
    assert len(children) == 500
    assert {child.parent for child in children} == set(state.parents)
    assert all(len(child.mutations) == 1 and child.mutations[0][1] == SCALE for child in children)
    assert len({child.mutations[0][0] for child in children}) == 500
    counts = [sum(child.parent == parent for child in children) for parent in state.parents]
    assert all(60 < count < 140 for count in counts)  # 100 +- 4.5 standard deviations
    grandchildren = ga.ask(told(ga, state, np.arange(500.0), [0.0] * 10)[0])
    assert max(len(genome.mutations) for genome in grandchildren) == 2


def test_parents_are_the_best_and_ties_go_to_the_lower_index():
    ga = GA(population=6, parents=3, validation_candidates=2)
    state, genomes, candidates = told(ga, ga.init(0), [1, 5, 5, 0, 5, 5], [1, 2])
    assert candidates == [genomes[1], genomes[2]]
    assert state.parents == (genomes[1], genomes[2], genomes[4])
    assert state.elite == genomes[2]
    assert (state.generation, state.steps) == (1, 100)


def test_last_candidate_gives_way_to_the_previous_elite():
    ga = GA(population=6, parents=2, validation_candidates=3)
    first, genomes, _ = told(ga, ga.init(0), [0, 1, 2, 3, 4, 5], [0, 9, 0])
    assert first.elite == genomes[4]
    second, children, candidates = told(ga, first, [5, 4, 3, 2, 1, 0], [7, 6, 5])
    assert candidates == [genomes[4], children[0], children[1]]
    # The elite is not in the population, but replaces the last parent.
    assert second.elite == genomes[4]
    assert second.parents == (genomes[4], children[0])
    assert (second.generation, second.steps) == (2, 200)
    third, grandchildren, candidates = told(ga, second, [0, 0, 0, 1, 0, 0], [7, 8, 5])
    assert third.elite == candidates[1] == grandchildren[3]
    assert third.parents == (grandchildren[3], grandchildren[0])


def test_the_elite_keeps_its_rank_in_a_tie():
    ga = GA(population=4, parents=2, validation_candidates=3)
    first, _, _ = told(ga, ga.init(0), [0, 1, 2, 3], [1, 2, 3])
    second, _, _ = told(ga, first, [9, 9, 9, 9], [3, 3, 3])
    assert second.elite == first.elite


def test_a_population_smaller_than_the_candidates():
    ga = GA(population=3, parents=1)
    first, _, candidates = told(ga, ga.init(0), [0, 1, 2], [1, 2, 3])
    assert len(candidates) == 3
    _, _, candidates = told(ga, first, [0, 1, 2], [1, 2, 3, 4])
    assert len(candidates) == 4


def test_elites_play_again_and_may_lose_their_place():
    ga = GA(population=6, parents=3, validation_candidates=3, elites=2)
    first, genomes, _ = told(ga, ga.init(0), [0, 1, 2, 3, 4, 5], [9, 8, 7])
    second, again, candidates = told(ga, first, [5, 0, 1, 2, 3, 4], [9, 8, 7])
    assert again[:2] == [genomes[5], genomes[4]] and all(genome.depth == 1 for genome in again[2:])
    assert candidates == [genomes[5], again[5], again[4]]  # the elite occurs only once
    assert second.parents == (genomes[5], again[5], again[4])
    third, population, _ = told(ga, second, [0, 1, 2, 3, 4, 5], [0, 8, 7])
    assert population[:2] == [genomes[5], again[5]] and genomes[5] not in third.parents
    with pytest.raises(ValueError, match="elites = 4: expected at most 3, as there are 3 parents and 6 genomes"):
        GA(population=6, parents=3, elites=4)
    with pytest.raises(ValueError, match="elites = 6: expected at most 5, as there are 6 parents and 6 genomes"):
        GA(population=6, parents=6, elites=6)


def test_tournaments_favor_the_best_parents():
    """The k-th best of T wins a tournament of n draws with probability ((T - k)**n - (T - k - 1)**n) / T**n."""
    population, t, n = 4000, 5, 3
    ga = GA(population=population, parents=t, tournament=n)
    state, _, _ = told(ga, ga.init(3), np.arange(float(population)), [0.0] * 10)
    children = ga.ask(state)
    found = np.array([sum(child.parent == parent for child in children) for parent in state.parents])
    k = np.arange(t)
    expected = population * ((t - k) ** n - (t - k - 1) ** n) / t**n
    assert np.all(np.abs(found - expected) < 5 * np.sqrt(expected))
    assert GA(population=500, parents=5, tournament=1).ask(state) == GA(population=500, parents=5).ask(state)


def test_sigma_adapts_itself():
    ga = GA(population=600, parents=4, sigma=0.1, sigma_factor=2.0)
    first, _, _ = told(ga, ga.init(0), np.arange(600.0), [0.0] * 10)
    children = ga.ask(first)
    powers = np.log2([child.mutation.scale / 0.1 for child in children])
    assert powers.min() > -1.001 and powers.max() < 1.001
    assert abs(powers.mean()) < 5 / np.sqrt(3 * 600) and abs(powers.var() - 1 / 3) < 0.07
    assert all(np.float32(child.mutation.scale) == child.mutation.scale for child in children)
    second, _, _ = told(ga, first, powers, [0.0] * 10)  # as if larger steps were better
    grandchildren = ga.ask(second)
    for child in grandchildren:
        inherited = child.parent.mutation.scale if child.parent.mutation else 0.1
        assert 0.499 < child.mutation.scale / inherited < 2.001
    assert ga.metrics(first, second)["sigma"] > 0.15
    assert ga.metrics(second, second)["sigma"] == pytest.approx(
        np.mean([parent.mutation.scale if parent.mutation else 0.1 for parent in second.parents])
    )


def test_self_adaptive_sigma_shrinks_near_an_optimum():
    training = Training(seed=1, generations=60, validation_episodes=3, test_episodes=0)
    options = {"population": 60, "parents": 6, "sigma": 1.0, "validation_candidates": 4}

    def last(ga):
        state, _ = list(train(ga, ToyEvaluator(), training))[-1]
        return state.algorithm

    adapted, fixed = last(GA(**options, sigma_factor=2.0)), last(GA(**options))
    assert np.linalg.norm(theta(adapted.elite) - TARGET) < 0.3 * np.linalg.norm(theta(fixed.elite) - TARGET)


def test_random_search_is_fresh_and_keeps_its_elite():
    search = RandomSearch(population=5, validation_candidates=2)
    first, genomes, _ = told(search, search.init(1), [0, 1, 2, 3, 4], [1, 2])
    assert first.elite == genomes[3]
    second, others, candidates = told(search, first, [0, 1, 2, 3, 4], [5, 4])
    assert candidates == [genomes[3], others[4]]
    assert second.elite == genomes[3]
    assert not set(genomes) & set(others)
    assert all(genome.mutations == () for genome in others)


def test_ga_beats_random_search_at_equal_steps():
    def final(algorithm, seed):
        training = Training(seed=seed, total_steps=20_000, validation_episodes=3, test_episodes=20)
        return list(train(algorithm, ToyEvaluator(), training))[-1][1][-1].test.mean

    for seed in range(5):
        ga, search = GA(population=30, parents=5, sigma=0.2, validation_candidates=4), RandomSearch(population=30)
        assert final(ga, seed) > final(search, seed) + 1.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(2, 12), st.booleans())
def test_selection(fitness, count, with_elite):
    genomes = [Genome(index) for index in range(len(fitness))]
    order = ranking(np.array(fitness))
    assert order == sorted(range(len(fitness)), key=lambda i: (-fitness[i], i))
    elite = Genome(10**6) if with_elite else None
    candidates = pick_candidates(genomes, np.array(fitness), count, elite)
    best = [genomes[i] for i in order]
    assert candidates == ([elite, *best[: count - 1]] if with_elite else best[:count])
    validation = np.array([float(candidate.root % 7) for candidate in candidates])
    chosen = candidates.index(pick_elite(candidates, validation))
    assert validation[chosen] == validation.max()
    assert not np.any(validation[:chosen] == validation.max())
