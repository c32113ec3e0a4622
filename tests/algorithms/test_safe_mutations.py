"""Safe mutations (SM-R): the change of outputs compared with NumPy and TensorFlow in double precision, the scales that
are found, and runs with safe mutations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.safe_mutations import rescaled
from neuroevo.analysis.population import read_population
from neuroevo.config.load import make_config
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.problems import ConfigError
from neuroevo.native.weights import NativeWeights
from neuroevo.runs.reader import RunReader
from neuroevo.runs.rebuilt import weights_of
from neuroevo.sessions.folder import RunFolder
from tests.support import runs
from tests.support.population_reference import ReferenceNetwork, noise

SCREENS = ["input uint8 10 8 2", "conv 3 3 3 2 same 1.0", "bias", "relu", "dense 5 1.0", "bias", "dense 4 0.1", "bias"]
NETWORKS = {
    "mlp": ["input float32 6", "dense 7 1.0", "bias", "tanh", "dense 3 1.0", "bias"],
    "conv": SCREENS,
    "vbn": [*SCREENS[:3], "vbn", *SCREENS[3:]],
}
PARENT = Genome(5).child(6, 0.25)


def batch_of(layers, count=64):
    _, dtype, *shape = layers[0].split()
    drawn = np.random.default_rng(0).normal(0, 1, (count, *map(int, shape)))
    return (np.abs(drawn) * 100).astype(np.uint8) if dtype == "uint8" else drawn.astype(np.float32)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_change_is_that_of_the_outputs(name):
    layers = NETWORKS[name]
    batch, reference = batch_of(layers), ReferenceNetwork(layers)
    weights = NativeWeights(["; ".join(layers)], reference_batch=batch)
    before = weights.theta(PARENT).astype(np.float64)
    change = weights.output_change(PARENT)
    for seed, scale in [(1, 0.125), (2, 0.5), (1, 0.125)]:
        after = before + scale * noise(seed, reference.dimension)
        moments = batch if name == "vbn" else None
        both = [reference.forward(theta, batch[::2], moments) for theta in (after, before)]
        assert change(seed, scale) == pytest.approx(np.mean((both[0] - both[1]) ** 2), rel=1e-4)
    assert change(1, 0.0) == 0


def test_an_lstm_sees_the_batch_in_order():
    text = "input float32 4; lstm 6 1.0; dense 2 1.0; bias"
    batch = batch_of([text.split(";")[0]], 32)
    in_order, reversed_ = (
        NativeWeights([text], reference_batch=each).output_change(PARENT) for each in (batch, batch[::-1])
    )
    assert in_order(3, 0.5) == in_order(3, 0.5) != reversed_(3, 0.5)


@given(st.floats(1e-5, 1e-2), st.integers(0, 2**62))
def test_scales_have_the_change_that_is_wanted(wanted, seed):
    weights = NativeWeights(["; ".join(NETWORKS["mlp"])], reference_batch=batch_of(NETWORKS["mlp"]))
    parents = [PARENT, Genome(7), PARENT]
    seeds = [seed, seed + 1, seed + 2]
    scales = rescaled(parents, seeds, [0.02, 0.05, 0.01], wanted, weights)
    for parent, noise_seed, scale in zip(parents, seeds, scales, strict=True):
        assert scale == np.float32(scale)
        assert weights.output_change(parent)(noise_seed, scale) == pytest.approx(wanted, rel=0.1)


def test_outputs_that_nothing_changes_keep_sigma():
    weights = NativeWeights(["input float32 6; dense 3 1.0"], reference_batch=np.zeros((64, 6), np.float32))
    assert rescaled([PARENT], [1], [0.25], 0.1, weights) == [0.25]


def test_without_a_reference_batch():
    with pytest.raises(UserError, match="need a reference batch"):
        NativeWeights(["input float32 6; dense 3 1.0"]).output_change(PARENT)


def config(change=1e-3, generations=4, **hardware):
    return runs.config(
        env={"name": "HardMaze-v0"},
        network={"name": "mlp", "hidden": [6]},
        algorithm={"name": "ga", "population": 12, "parents": 3, "sigma": 0.05, "elites": 1, "output_change": change},
        training={"generations": generations, "max_episode_steps": 60},
        hardware=hardware,
    )


def test_runs_are_the_same_on_any_hardware_and_after_an_interruption(tmp_path):
    runs.train(RunFolder.create(tmp_path / "one", config(lanes=1, slots=1, threads=1)))
    runs.train(RunFolder.create(tmp_path / "two", config(lanes=3, slots=2, threads=4)))
    expected = runs.results(tmp_path / "one")
    assert runs.results(tmp_path / "two") == expected
    reader = RunReader(tmp_path / "one")
    offspring = read_population(reader, 3).genomes[1:]
    change = weights_of(reader.config, reader.reference_batch()).output_change
    found = [change(each.parent)(each.mutation.seed, each.mutation.scale) for each in offspring]
    assert np.median(found) == pytest.approx(1e-3, rel=0.1)
    assert len({each.mutation.scale for each in offspring}) == len(offspring)
    assert reader.rows()[3]["sigma"] == pytest.approx(np.mean([each.mutation.scale for each in offspring]), rel=0.5)
    runs.train(RunFolder.resume(tmp_path / "one", ["training.generations=6"]))
    runs.train(RunFolder.create(tmp_path / "six", config(generations=6)))
    assert runs.results(tmp_path / "six") == runs.results(tmp_path / "one")


def test_a_fork_may_begin_with_safe_mutations(tmp_path):
    runs.train(RunFolder.create(tmp_path / "before", config(0.0)))
    assert RunReader(tmp_path / "before").reference_batch() is None
    changes = ["algorithm.output_change=0.001", "training.generations=6"]
    runs.train(RunFolder.fork(tmp_path / "fork", tmp_path / "before", changes))
    assert RunReader(tmp_path / "fork").reference_batch().shape == (128, 11)
    assert len({each.mutation.scale for each in read_population(RunReader(tmp_path / "fork"), 5).genomes[1:]}) > 1


@pytest.mark.parametrize(
    "changes", [{"network": {"normalize_observations": True}}, {"env": {"name": "brax:inverted_pendulum"}}]
)
def test_where_outputs_cannot_be_compared(changes):
    tables = {"env": {"name": "Hopper-v5"}, "network": {"name": "mlp"}, "algorithm": {"name": "ga", "output_change": 1}}
    with pytest.raises(ConfigError, match="expected safe mutations to be off"):
        make_config({name: {**table, **changes.get(name, {})} for name, table in tables.items()})


def test_sigma_is_adapted_in_one_way():
    with pytest.raises(ValueError, match="expected 0 where sigma_factor is above 1"):
        GA(output_change=0.1, sigma_factor=2.0)
