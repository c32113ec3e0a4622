"""Genomes with dense roots are bit-identical in play to genomes whose root is the seed of the same weights."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from neuroevo.core.behavior import Behavior
from neuroevo.core.episode import Episode, Outcomes
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Mutation, grow
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.population import Population
from neuroevo.native.weights import thetas_of
from neuroevo.networks import architectures
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.row_cache import RowCache
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.native_rollout import run_episodes

LAYOUTS = [(1, 1, 1), (3, 2, 3)]  # lanes, slots per lane, threads
SIGMA = float(np.float32(0.05))
RAM = Behavior(4, 8)  # distinguishes episodes with equal returns


def network_texts(names: Sequence[str]) -> list[str]:
    return [architectures.to_text(architectures.NETWORKS[name]("input uint8 84 84 4", 18)) for name in names]


def dense(genome: Genome, names: Sequence[str] = ("model",)) -> Genome:
    """Return the genome with the weights of its root seed as a dense root."""
    population = Population(network_texts(names), 1)
    population.init([0], [genome.network], [genome.root])
    vector = population.read([0])[0, : population.dimensions[genome.network]]
    return grow(Genome(Center(vector), network=genome.network), genome.mutations)


def genomes_of_all_kinds() -> list[Genome]:
    """Return genomes of 6 centers: roots, chains, antithetic pairs, and grandchildren."""
    genomes = []
    for base in range(6):
        center = Genome(base)
        child = center.child(10 + base, SIGMA)
        genomes += [center, child]
        if base % 2:
            genomes += [center.child(seed, sign * SIGMA) for seed in (20, 21) for sign in (1, -1)]
        if base % 3 == 0:
            genomes += [child.child(seed, SIGMA) for seed in (30, 31)]
    return genomes


GENOMES = genomes_of_all_kinds()


@pytest.fixture(scope="module")
def centered() -> list[Genome]:
    vectors = {base: dense(Genome(base)).root for base in {genome.root for genome in GENOMES}}
    return [grow(Genome(vectors[genome.root]), genome.mutations) for genome in GENOMES]


def episodes_of(genomes: Sequence[Genome]) -> list[Episode]:
    """Return one episode per genome, and a second episode for every fifth genome."""
    episodes = [Episode(genome, 7 + i, 25 + i % 9) for i, genome in enumerate(genomes)]
    return episodes + [Episode(genome, 1000 + i, 30) for i, genome in enumerate(genomes[::5])]


def assert_same(one: Outcomes, other: Outcomes) -> None:
    assert np.array_equal(one.returns, other.returns) and np.array_equal(one.steps, other.steps)
    assert np.array_equal(one.behaviors, other.behaviors)


@pytest.fixture(scope="module", params=["float32", "int8"])
def dtype(request: pytest.FixtureRequest) -> str:
    return request.param


def run(genomes: Sequence[Genome], dtype: str, lanes: int = 1, slots: int = 1, backend: str = "cpu") -> Outcomes:
    """Play the episodes with the lane runner."""
    layout = {"lanes": lanes, "slots": slots, "backend": backend, "behavior": RAM}
    return run_episodes(
        registry.resolve("frostbite"), [architectures.model], episodes_of(genomes), dtype=dtype, **layout
    )


@pytest.fixture(scope="module")
def expected(dtype: str) -> Outcomes:
    """Outcomes of the genomes with seeds as roots, played sequentially."""
    outcomes = run(GENOMES, dtype)
    assert len(np.unique(outcomes.behaviors[: len(GENOMES)], axis=0)) > len(GENOMES) // 2
    return outcomes


@pytest.mark.parametrize(("lanes", "slots", "threads"), LAYOUTS)
def test_the_lane_runner(centered, expected, dtype: str, lanes: int, slots: int, threads: int) -> None:
    library.set_threads(threads)
    assert_same(run(centered, dtype, lanes, slots), expected)


# Three roots and two children compete for the rows of parents.
@pytest.mark.parametrize(("lanes", "slots", "threads", "parent_rows"), [(2, 3, 2, 1), (1, 1, 1, None)])
def test_the_engines(centered, expected, dtype, lanes, slots, threads, parent_rows, engine) -> None:
    layout = {"lanes": lanes, "slots": slots, "threads": threads, "parent_rows": parent_rows, "behavior": RAM}
    with LocalEvaluator("frostbite", Network("model", dtype=dtype), engine=engine, **layout) as evaluator:
        assert_same(evaluator.evaluate(episodes_of(centered)), expected)
        assert_same(evaluator.evaluate(episodes_of(centered)), expected)  # the parents are still in their rows
        mixed = [one if i % 2 else other for i, (one, other) in enumerate(zip(GENOMES, centered, strict=True))]
        assert_same(evaluator.evaluate(episodes_of(mixed)), expected)


def test_the_reference_backend(centered, dtype: str) -> None:
    few = slice(2, 8)
    library.set_threads(2)
    assert_same(run(centered[few], dtype, 1, 2, "reference"), run(GENOMES[few], dtype, 2, 1))


def test_networks_of_different_sizes_and_the_order_of_the_queue(engine: str) -> None:
    names = ["model", "nature_dqn"]
    seeded = [grow(Genome(i // 2, network=i % 2), ((i, 0.01),) * (i % 3)) for i in range(10)]
    centered = [dense(genome, names) for genome in seeded]
    assert len({len(genome.root.vector) for genome in centered}) == 2
    with LocalEvaluator("frostbite", names, lanes=2, slots=2, behavior=RAM, engine=engine) as evaluator:
        expected = evaluator.evaluate(episodes_of(seeded))
        later = evaluator.submit(episodes_of(centered), 7)
        assert_same(evaluator.evaluate(episodes_of(centered[::-1])), evaluator.evaluate(episodes_of(seeded[::-1])))
        assert_same(evaluator.wait(later), expected)


def test_vectors_that_do_not_fit_are_refused() -> None:
    small, right = Genome(Center(np.ones(7))), dense(Genome(1))
    words = "7 weights, expected 1,008,450"
    for genomes in ([right, small], [small.child(1, SIGMA), small.child(2, SIGMA), right]):
        episodes = [Episode(genome, 0, 5) for genome in genomes]
        evaluator = LocalEvaluator("frostbite", "model", lanes=1, slots=1)
        with pytest.raises(UserError, match=words):
            evaluator.evaluate(episodes)
        with pytest.raises(UserError, match=words):
            run_episodes(registry.resolve("frostbite"), [architectures.model], episodes, lanes=1, slots=1)
        evaluator.close()
    with LocalEvaluator("frostbite", "model", lanes=1, slots=1) as evaluator, pytest.raises(LookupError):
        evaluator.evaluate([Episode(Genome(Center.named(right.root.name)), 0, 5)])
    for network, center in ((3, right.root), (-1, right.root), (1, Center(np.ones(1_008_451)))):
        genomes = [
            Genome(center, network=network),
            *(Genome(center, network=network).child(seed, SIGMA) for seed in (1, 2)),
        ]
        for some in (genomes[:1], genomes[1:]):  # a genome that plays, and a parent
            with (
                LocalEvaluator("frostbite", "model", lanes=1, slots=1) as evaluator,
                pytest.raises(UserError, match=rf"network {network} .*\[0, 1\)"),
            ):
                evaluator.evaluate([Episode(genome, 0, 5) for genome in some])


def test_vectors_are_packed_once() -> None:
    one, two = Center(np.arange(1, 4)), Center(np.arange(5))
    genomes = [Genome(one), Genome(3), Genome(two, network=1), None, Genome(Center(np.arange(1, 4))).child(1, 1.0)]
    theta_of, thetas = thetas_of(genomes, [3, 5])
    assert theta_of.tolist() == [0, -1, 1, -1, 0]
    assert thetas.dtype == np.float32 and thetas.tolist() == [[1, 2, 3, 0, 0], [0, 1, 2, 3, 4]]
    theta_of, thetas = thetas_of([Genome(3)], [3, 5])
    assert theta_of.tolist() == [-1] and thetas.shape == (0, 5)


def test_rows_remember_names_not_vectors() -> None:
    rows, center = RowCache(3), Center(np.ones(5))
    genome, alive = Genome(center), weakref.ref(center)
    for _ in range(2):  # when the row is assigned, and when it is used again
        assert [fill.source for fill in rows.require([genome, genome.child(1, SIGMA)])] in ([None, 2], [])
    del center, genome
    gc.collect()
    assert alive() is None
    again = Genome(Center(np.ones(5)))
    assert rows.row(again) is not None and rows.source(again.child(2, SIGMA)) == (rows.row(again), [Mutation(2, SIGMA)])


def int64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_the_queue_hands_thetas_to_the_rows() -> None:
    queue = load_ops().episode_queue_make(lanes=1, slots_per_lane=4, first_row=2)
    thetas = np.arange(6, dtype=np.float32).reshape(2, 3)

    def submit(theta_of: np.ndarray, sources: np.ndarray, thetas: np.ndarray) -> None:
        genomes = int64(5, 6, 7), np.array([0, 1, 1], np.int32), sources, int64(0, 0, 9), theta_of
        chains = int64(0, 0, 1, 1), int64(8), np.array([0.5], np.float32), int64(-1)
        episodes = int64(0, 1, 2, 3), int64(0, 1, 1, 2), *[int64(0, 0, 0, 0)] * 2, int64(-1, -1, -1, -1)
        load_ops().episode_queue_submit(queue, *episodes, *genomes, *chains, thetas, int64(0)[0])

    none = int64(-1, -1, -1)
    for theta_of, sources, given, message in (
        (int64(0, 2, -1), none, thetas, r"theta .* 2 .*\[0, 2\)"),
        (int64(0, -2, -1), none, thetas, r"theta .* -2 .*\[0, 2\)"),
        (int64(0, -1, -1), int64(1, -1, -1), thetas, "genome 5 .*source row 1"),
        (int64(0), none, thetas, r"'genome_thetas' .*\[1\], expected \[3\]"),
        (none, none, thetas[0], r"'thetas' .*\[3\], expected \[V, W\]"),
    ):
        with pytest.raises(Exception, match=message):
            submit(theta_of, sources, given)
    submit(int64(1, 0, -1), none, thetas)
    take = load_ops().episode_queue_take(queue, int64(0)[0])
    rows = take.live_rows.numpy()
    assert rows[1] == rows[2] and len(set(rows)) == 3  # two episodes of one genome
    assert take.assign_rows.numpy().tolist() == [rows[0], rows[1]]
    assert take.assign_networks.numpy().tolist() == [0, 1]
    assert take.assign_thetas.numpy().tolist() == [[3, 4, 5], [0, 1, 2]]
    assert take.init_rows.numpy().tolist() == [rows[3]] and take.perturb_dst.numpy().tolist() == [rows[1]]
