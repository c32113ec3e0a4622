"""The GA and random search: selection, elite and offspring."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.algorithms.base import Played
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.random_search import RandomSearch
from neuroevo.algorithms.selection import pick_candidates, pick_elite, ranking
from neuroevo.config.schema import Training
from neuroevo.core.genome import Genome
from neuroevo.training.loop import train
from tests.support.toy import ToyEvaluator

SCALE = float(np.float32(0.002))


def told(ga, state, fitness, validation):
    """One generation with the given fitness, [N], and validation means, [C]."""
    genomes = ga.ask(state)
    state = ga.tell(state, Played(genomes, np.array(fitness), 90))
    candidates = ga.candidates(state)
    return ga.tell_validation(state, Played(candidates, np.array(validation), 10)), genomes, candidates


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
    # The elite's fitness is not among the population's, yet it stays a parent, in the place of the last one.
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
