"""NEAT: genes of random runs are valid and have unique innovation numbers, mutations and crossover follow the paper,
species share the offspring, and a real run solves XOR."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.neat import NEAT
from neuroevo.algorithms.neat_genes import Genes, GeneTable, Shape, Splits, crossed, distance, expressed, with_node
from neuroevo.config.load import make_config
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.problems import ConfigError
from neuroevo.core.randomness import Draws
from neuroevo.native.population import Population
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.layers import unpack_weights
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.loop import train

DISCRETE = "input float32 3; dense 4 1.0; bias; tanh; dense 2 0.1; bias"
CONTINUOUS = "input float32 2 2; dense 3 0.1; bias; tanh"
GROWING = {"add_edge": 0.5, "add_node": 0.4, "toggle_edge": 0.3}


def after(neat, state, weights, fitness):
    """Return the state before the next generation, for a fitness [N], and the genomes that have it."""
    genomes = neat.ask(state, weights)
    state = neat.tell(state, EvaluatedPopulation(genomes, np.asarray(fitness, float), 10), weights)
    chosen = neat.candidates(state)
    return neat.tell_validation(state, EvaluatedPopulation(chosen, np.arange(len(chosen), 0.0, -1.0), 1)), genomes


def evolved(neat, text, seed, generations):
    """Return the states of a run with random fitness."""
    rng, weights = np.random.default_rng(seed), NativeWeights([text])
    states = [neat.init(seed)]
    for _ in range(generations):
        states.append(after(neat, states[-1], weights, rng.normal(size=neat.population))[0])
        states[-1].check_state()
        states[-1].members.check_state()
        neat.check_state(states[-1])
    return states


@pytest.mark.parametrize(("text", "graph"), [
    (DISCRETE, "input float32 3; graph 2 2 1.0 0>3 1>3 2>3 0>4 1>4 2>4"),
    (CONTINUOUS, "input float32 2 2; graph 3 3 1.0 0>4 1>4 2>4 3>4 0>5 1>5 2>5 3>5 0>6 1>6 2>6 3>6; tanh"),
])  # fmt: skip
def test_networks_start_without_hidden_nodes(text, graph):
    genomes = NEAT(population=40).ask(NEAT(population=40).init(5), NativeWeights([text]))
    assert {genome.network for genome in genomes} == {graph}
    assert len(set(genomes)) == 40
    weights = np.concatenate([genome.root.vector for genome in genomes])
    assert abs(weights.mean()) < 0.2 and 0.85 < weights.std() < 1.15


@settings(max_examples=15)
@given(st.integers(0, 2**63 - 1), st.sampled_from([DISCRETE, CONTINUOUS]), st.integers(2, 30))
def test_genes_are_valid_and_innovation_numbers_unique(seed, text, population):
    neat, shape = NEAT(population=population, **GROWING), Shape.of(text)
    first = shape.inputs + shape.outputs
    for state in evolved(neat, text, seed, 12)[1:]:
        genes = state.members.split()
        assert len(genes) == population
        for each in genes:
            assert (np.diff(each.innovations) > 0).all() and (np.diff(each.nodes) > 0).all()
            assert len(each.biases) == shape.outputs + len(each.nodes)
            edges = set(map(tuple, each.edges.tolist()))
            for node in each.nodes.tolist():  # each node splits the edge recorded by the run
                start, end = state.splits[node - first].tolist()
                assert {(start, end), (start, node), (node, end)} <= edges
        genomes = neat.ask(state, NativeWeights([text]))
        for network in {genome.network for genome in genomes}:
            rows = [genome.root.vector for genome in genomes if genome.network == network]
            with_core = Population([text, network], len(rows))  # checks that inputs and outputs are equal
            assert with_core.dimensions[1] == len(rows[0])


@settings(max_examples=10)
@given(st.integers(0, 2**63 - 1))
def test_a_run_follows_from_its_seed_and_each_state(seed):
    neat = NEAT(population=12, **GROWING)
    for one, two in zip(evolved(neat, DISCRETE, seed, 4), evolved(neat, DISCRETE, seed, 4), strict=True):
        weights = NativeWeights([DISCRETE])
        assert neat.ask(one, weights) == neat.ask(two, weights)


def genes(edges, weights, nodes=(), enabled=None):
    """Return genes with one output, whose biases are 0."""
    count = len(edges)
    enabled = np.ones(count, np.bool_) if enabled is None else np.array(enabled)
    return Genes(np.array(nodes, np.int64), np.zeros(1 + len(nodes), np.float32), np.array(edges, np.int64),
                 np.array(weights, np.float32), enabled)  # fmt: skip


def test_the_same_split_is_the_same_node():
    splits, draws = Splits(3, np.zeros((0, 2), np.int64)), Draws(1, 0, 1000)
    one, two = (with_node(genes([(0, 2)], [weight]), splits, draws) for weight in (0.5, -4.0))
    for each, weight in ((one, 0.5), (two, -4.0)):
        assert each.edges.tolist() == [[0, 2], [0, 3], [3, 2]] and each.nodes.tolist() == [3]
        assert each.weights.tolist() == [weight, 1.0, weight]
        assert each.enabled.tolist() == [False, True, True]
    again = with_node(replace(one, enabled=np.array([True, False, False])), splits, draws)
    assert again.nodes.tolist() == [3, 4]  # another node in a genome that has the first one
    assert splits.edges.tolist() == [[0, 2], [0, 2]]


def test_genes_that_one_parent_has_come_from_the_fitter():
    fitter = genes([(0, 2), (0, 3), (3, 2)], [1, 2, 3], [3], [False, True, True])
    other = genes([(0, 2), (1, 2)], [10, 20])
    weights, enabled = set(), 0
    for seed in range(200):
        child = crossed(fitter, other, Draws(seed, 0, 1000), 0.75)
        assert child.edges.tolist() == fitter.edges.tolist() and child.nodes.tolist() == [3]
        assert child.weights[1:].tolist() == [2, 3] and child.enabled[1:].all()
        weights.add(float(child.weights[0]))
        enabled += int(child.enabled[0])
    assert weights == {1.0, 10.0}
    assert 25 < enabled < 75  # a quarter of 200


def test_distance_counts_differing_edges_and_averages_weights():
    one, two = genes([(0, 2), (0, 3), (3, 2)], [1, 2, 3], [3]), genes([(0, 2), (1, 2)], [4, 20])
    assert distance(one, two, 0.4) == pytest.approx(3 + 0.4 * (3 + 0) / 2)  # of an edge and the output's bias
    assert distance(one, two, 0.4) == pytest.approx(distance(two, one, 0.4))
    wide = genes([(i, 40) for i in range(40)], np.zeros(40))
    part = genes([(i, 40) for i in range(30)], np.zeros(30))
    assert distance(wide, part, 0.4) == pytest.approx(10 / 40)


def test_expression_leaves_out_what_reaches_no_output():
    shape = Shape("input float32 2", 2, 1, False)
    built = genes([(0, 4), (1, 2), (1, 3), (3, 2), (4, 5)], [1, 2, 3, 4, 5], [3, 4, 5])
    built = replace(built, biases=np.array([0.5, 0.25, 9, 9], np.float32))
    genome = expressed(built, shape)
    assert genome.network == "input float32 2; graph 2 1 1.0 1>2 1>3 2>3"
    assert genome.root.vector.tolist() == [3, 2, 4, 0.25, 0.5]
    off = expressed(replace(built, enabled=np.zeros(5, np.bool_)), shape)
    assert off == Genome(Center([0.5]), network="input float32 2; graph 1 1 1.0")


def test_cycles_are_refused():
    shape = Shape("input float32 2", 2, 1, False)
    with pytest.raises(ValueError, match="cycle through node 3"):
        expressed(genes([(0, 3), (3, 2), (3, 4), (4, 3)], [1, 2, 3, 4], [3, 4]), shape)


def test_champions_of_large_species_are_copied():
    neat, weights = NEAT(population=30, threshold=50.0), NativeWeights([DISCRETE])
    state = neat.init(2)
    for _ in range(3):
        best = neat.ask(state, weights)[7]
        state, genomes = after(neat, state, weights, [float(i == 7) for i in range(30)])
        assert len(genomes) == 30 and best in neat.ask(state, weights)


def test_species_share_offspring_by_their_mean_fitness():
    neat, weights = NEAT(population=60, threshold=0.4), NativeWeights([DISCRETE])
    state, _ = after(neat, neat.init(2), weights, np.ones(60))
    count = len(state.representatives.sizes)
    assert count >= 5 and neat.metrics(state, state)["species"] == count
    near = [distance(each, state.representatives.split()[0], 0.4) < 0.4 for each in state.members.split()]
    then, _ = after(neat, state, weights, np.where(near, 1.0, 0.0))
    best = then.representatives.split()[0]
    of_best = sum(distance(each, best, 0.4) < 0.8 for each in then.members.split())
    assert len(then.members.sizes) == 60 and of_best > 45


@pytest.mark.parametrize(("threshold", "species"), [(50.0, 1), (0.2, 2)])
def test_species_that_stagnate_die_out_but_for_the_best(threshold, species):
    neat, weights = NEAT(population=60, threshold=threshold, stagnation=1), NativeWeights([DISCRETE])
    state, _ = after(neat, neat.init(2), weights, np.ones(60))
    state = replace(
        state,
        best=np.full(len(state.best), 2.0),
        members=GeneTable.of([state.representatives.split()[i % len(state.best)] for i in range(60)]),
    )
    state, _ = after(neat, state, weights, np.ones(60))
    assert len(state.representatives.sizes) == species and len(state.members.sizes) == 60


def test_growth_ends_at_the_largest_size():
    neat = NEAT(population=20, max_weights=14, **GROWING)
    state = evolved(neat, DISCRETE, 1, 12)[-1]
    sizes = [len(each.weights) + len(each.biases) for each in state.members.split()]
    assert 8 < max(sizes) <= 14
    assert (neat.own_networks.count, neat.own_networks.weights) == (20, 14)
    with pytest.raises(UserError, match=r"starts with 8 weights, expected at most 7, .* algorithm.max_weights"):
        NEAT(max_weights=7).ask(NEAT(max_weights=7).init(0), NativeWeights([DISCRETE]))


def test_another_run_starts_from_grown_networks():
    neat, weights = NEAT(population=10, **GROWING), NativeWeights([DISCRETE])
    grown = max(neat.ask(evolved(neat, DISCRETE, 4, 12)[-1], weights), key=lambda each: len(each.network))
    hidden = len(unpack_weights(grown.network, grown.root.vector).layers[0].bias) - 2
    assert hidden > 1
    state = neat.init(9, [grown])
    asked = neat.ask(state, weights)
    assert asked[0] == grown and len(asked) == 10 and len(set(asked)) > 5
    state, _ = after(neat, state, weights, np.arange(10.0))
    assert state.splits[:hidden].tolist() == [[-1, -1]] * hidden
    with pytest.raises(UserError, match="is not a NEAT genome"):
        neat.ask(neat.init(9, [Genome(3)]), weights)


def test_damaged_states_are_refused():
    neat = NEAT(population=6, **GROWING)
    state = evolved(neat, DISCRETE, 4, 6)[-1]
    for wrong in ({"best": state.best[1:]}, {"improved": None}, {"splits": state.splits[:, :1]}, {"members": None}):
        with pytest.raises(ValueError, match=r"expected|missing"):
            replace(state, **wrong).check_state()
    with pytest.raises(ValueError, match="has 6 members, expected 7"):
        NEAT(population=7).check_state(state)
    table = state.members
    for name in ("sizes", "nodes", "biases", "edges", "weights", "enabled"):
        with pytest.raises(ValueError, match=r"expected|do not fit"):
            replace(table, **{name: getattr(table, name)[1:]}).check_state()
    assert [*map(len, GeneTable.of(table.split()).split()[0].edges.T)] == [table.sizes[0, 1]] * 2


@pytest.mark.parametrize(("section", "key", "value"), [("hardware", "device", "gpu"), ("network", "dtype", "int8")])
def test_networks_are_of_floats_on_the_cpu(section, key, value):
    tables = {"env": {"name": "frostbite"}, "network": {"name": "model"}, "algorithm": {"name": "neat"}}
    tables[section] = {**tables.get(section, {}), key: value}
    with pytest.raises(ConfigError) as caught:
        make_config({**tables, "training": {"generations": 1}})
    assert [problem.key for problem in caught.value.problems] == [f"{section}.{key}"]


def test_it_solves_xor():
    tables = {
        "env": {"name": "gymnasium:experiments.examples.xor:XOR-v0"},
        "network": {"name": "mlp"},
        "algorithm": {"name": "neat", "validation_candidates": 2},
        "training": {"seed": 1, "generations": 100, "validation_episodes": 1, "test_episodes": 1, "target": 3.9},
    }
    config = make_config(tables)
    with make_evaluator(config) as evaluator:
        record = [each for _, records in train(config.algorithm, evaluator, config.training) for each in records][-1]
    assert record.test.mean > 3.9
    layer = unpack_weights(record.elite.network, record.elite.root.vector).layers[0]
    assert len(layer.bias) > 1  # no network without hidden units does
