"""evosax strategies as algorithms: comparison with evosax's own loop, a known optimum, resuming, invalid settings."""

import numpy as np
import pytest

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.registry import find_algorithm
from neuroevo.config.load import make_config
from neuroevo.config.named import named_code
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.native.weights import NativeWeights
from tests.algorithms.test_strategies import START, WEIGHTS, D, generations, sphere
from tests.support import runs
from tests.support.toy import ToyEvaluator

pytest.importorskip("evosax")


@pytest.mark.thorough
def test_an_optimum_is_found():
    """Sphere: from about -50 to within 0.05 of the optimum, 0, in 100 generations of 20."""
    *_, (_, _, _, last) = generations(find_algorithm("evosax:CR_FM_NES")(population=20), sphere, 100)
    assert sphere(WEIGHTS.theta(last.elite)) > -0.05 > sphere(START.root.vector)


@pytest.mark.parametrize("name", ["CMA_ES", "SAMR_GA"])
def test_a_run_is_what_evosax_does_itself(name):
    import jax
    from evosax.algorithms import algorithms

    kind, seed = algorithms[name], 3
    strategy = kind(population_size=20, solution=np.zeros(D, np.float32))
    params = strategy.default_params
    state = None
    for before, genomes, fitness, after in generations(find_algorithm(f"evosax:{name}")(population=20), sphere, 5):
        (drawn,) = draw_seeds(1, seed, before.generation, Purpose.MUTATIONS)
        ask, other = jax.random.split(jax.random.key(drawn % 2**32))
        thetas, loss = np.array([WEIGHTS.theta(genome) for genome in genomes]), -fitness.astype(np.float32)
        if state is None and name == "SAMR_GA":  # the first population has fresh weights
            assert genomes[0] == START and len(set(genomes)) == 20
            state = strategy.init(other, thetas, loss, params)
        else:
            state = strategy.init(other, START.root.vector, params) if state is None else state
            vectors, state = strategy.ask(ask, state, params)
            np.testing.assert_array_equal(thetas, vectors)
            state, _ = strategy.tell(other, vectors, loss, state, params)
        for ours, theirs in zip(after.arrays, jax.tree.leaves(state), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        if name == "SAMR_GA":
            assert after.elite == genomes[int(np.argmax(fitness))]
        else:
            np.testing.assert_array_equal(WEIGHTS.theta(after.elite), state.mean)


def test_settings_reach_the_strategy():
    spread = find_algorithm("evosax:CMA_ES")(population=400, sigma=0.25)
    thetas = np.array([WEIGHTS.theta(each) for each in spread.ask(spread.init(1, [START]), WEIGHTS)])
    assert thetas.std(axis=0).mean() == pytest.approx(0.25, rel=0.05)
    noise = find_algorithm("evosax:Open_ES")(population=400, sigma=0.125, learning_rate=0.5)
    state = noise.init(1, [START])
    genomes = noise.ask(state, WEIGHTS)
    assert np.std([WEIGHTS.theta(each) for each in genomes], axis=0).mean() == pytest.approx(0.125, rel=0.05)
    fitness = np.array([sphere(WEIGHTS.theta(each)) for each in genomes])
    moved = WEIGHTS.theta(noise.tell(state, EvaluatedPopulation(genomes, fitness), WEIGHTS).elite) - START.root.vector
    np.testing.assert_allclose(np.abs(moved), 0.5, rtol=1e-3)  # Adam's first step
    fixed = find_algorithm("evosax:SimpleES")(params={"c_std": 0.0, "std_init": 0.5})
    assert fixed.tell(fixed.init(1, [START]), EvaluatedPopulation(genomes[:64], fitness[:64]), WEIGHTS).arrays


def test_going_on_from_any_checkpoint_equals_not_stopping(tmp_path):
    pytest.importorskip("jax")
    algorithm = {"name": "evosax:CMA_ES", "population": 6, "sigma": 0.3}
    toy = ToyEvaluator()
    runs.new_run(tmp_path / "whole", toy, algorithm=algorithm)
    whole = runs.results(tmp_path / "whole")
    for call in (1, 5):
        path = tmp_path / str(call)
        with pytest.raises(KeyboardInterrupt):
            runs.new_run(path, ToyEvaluator(interrupt_at=call), algorithm=algorithm)
        runs.play(runs.RunFolder.resume(path))
        assert runs.results(path) == whole


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": "evosax:CMA_EZ"}, "evosax has no strategy CMA_EZ; did you mean CMA_ES"),
        ({"name": "evosax:SV_CMA_ES"}, "evosax's SV_CMA_ES needs arguments beyond a configuration"),
        ({"name": "evosax:CR_FM_NES", "population": 7}, "rejected by evosax's CR_FM_NES: Population size must be even"),
        ({"name": "evosax:CMA_ES", "params": {"std_int": 1.0}}, "CMA_ES has no such parameter; did you mean std_init"),
        ({"name": "evosax:CMA_ES", "learning_rate": 0.1}, "CMA_ES has no optimizer"),
        ({"name": "evosax:DifferentialEvolution", "sigma": 0.1}, "DifferentialEvolution has no such parameter"),
    ],
)
def test_mistakes(table, message):
    with pytest.raises(ConfigError, match=message):
        make_config({"env": {"name": "hard_maze"}, "network": {"name": "linear"}, "algorithm": table})


def test_large_networks_and_other_states_are_refused():
    algorithm = find_algorithm("evosax:CMA_ES")(population=8)
    weights = NativeWeights(["input float32 201; dense 100 0.1"])
    with pytest.raises(UserError, match="the network has 20,100 weights, expected at most 20,000"):
        algorithm.ask(algorithm.init(1), weights)
    *_, (_, _, _, last) = generations(algorithm, sphere, 2)
    with pytest.raises(ValueError, match="the arrays are not those of evosax's xNES with these settings"):
        find_algorithm("evosax:xNES")(population=8).ask(last, WEIGHTS)


def test_a_strategy_is_no_code_of_the_users():
    tables = {"algorithm": {"name": "evosax:CMA_ES"}, "env": {"name": "hard_maze"}}
    assert [each for each in named_code(tables) if each.key == "algorithm.name"] == []
