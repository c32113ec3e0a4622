"""Strategies compared with evosax, cmaes or float64 implementations for equal noise, and on known optima."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata

from neuroevo.algorithms.ars import ARS
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.canonical_es import CanonicalES
from neuroevo.algorithms.cma_es import CMAES
from neuroevo.algorithms.fitness_shaping import rank_weights
from neuroevo.algorithms.ns_es import NSRAES
from neuroevo.algorithms.optimizers import SGD, ClipUp
from neuroevo.algorithms.pgpe import PGPE
from neuroevo.algorithms.sep_cma_es import SepCMAES
from neuroevo.algorithms.snes import SNES, _exp
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, Scaled
from neuroevo.core.state_codec import decode, encode
from neuroevo.native.weights import NativeWeights

D = 40
WEIGHTS = NativeWeights([f"input float32 1; dense {D} 0.1"])
ZERO = Genome(Center(np.zeros(D)))
START = Genome(Center(np.linspace(-1.5, 1.5, D)))


def sphere(theta):
    return -float(np.sum(np.square(theta - 0.5, dtype=np.float64)))


def rosenbrock(theta):
    x = np.asarray(theta, np.float64)
    return -float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def noise_of(genomes):
    return np.array([WEIGHTS.theta(ZERO.child(genome.mutation.seed, 1.0)) for genome in genomes], np.float64)


def generations(algorithm, fitness_of, count, start=START, seed=3, weights=WEIGHTS):
    """Yield the state, genomes, fitness and next state of each generation; states go through a checkpoint's codec."""
    state = algorithm.init(seed, [start])
    for _ in range(count):
        genomes = algorithm.ask(state, weights)
        assert genomes == algorithm.ask(state, weights)
        fitness = np.array([fitness_of(weights.theta(genome)) for genome in genomes])
        after = algorithm.tell(state, EvaluatedPopulation(genomes, fitness, steps=7), weights)
        assert (after.generation, after.steps) == (state.generation + 1, state.steps + 7)
        yield state, genomes, fitness, after
        (state,) = decode(encode(after), algorithm.state_type)


def best_of(algorithm, fitness_of, count):
    *_, (_, _, _, state) = generations(algorithm, fitness_of, count)
    return fitness_of(state.center.root.vector)


evosax = pytest.importorskip("evosax.algorithms")


class Beside:
    """evosax strategy that receives neuroevo's populations, in evosax's order."""

    def __init__(self, kind, population, **options):
        import jax

        self._key = jax.random.key(0)
        self.strategy = kind(population_size=population, solution=np.zeros(D, np.float32), **options)
        self.params = self.strategy.default_params
        self.state = None

    def begin(self, mean, **values):
        self.params = self.params.replace(**values)
        self.state = self.strategy.init(self._key, np.asarray(mean, np.float32), self.params)

    def tell(self, thetas, fitness):
        self.state, _ = self.strategy.tell(self._key, thetas.astype(np.float32), -fitness, self.state, self.params)
        return np.asarray(self.state.mean), np.asarray(self.state.std)


def pairs_apart(genomes, fitness):
    """Reorder pairs as in evosax: all plus halves before all minus halves."""
    thetas = np.array([WEIGHTS.theta(genome) for genome in genomes])
    return np.concatenate([thetas[::2], thetas[1::2]]), np.concatenate([fitness[::2], fitness[1::2]])


@pytest.mark.parametrize("fitness_of", [sphere, rosenbrock])
def test_pgpe_with_clipup_goes_as_evosax_does(fitness_of):
    from evosax.core.optimizer import clipup

    algorithm = PGPE(population=30, sigma=0.3, optimizer=ClipUp(learning_rate=0.1, max_speed=0.15))
    theirs = Beside(evosax.PGPE, 30, optimizer=clipup(learning_rate=0.1, max_velocity=0.15))
    theirs.begin(START.root.vector, std_init=0.3)
    for _, genomes, fitness, after in generations(algorithm, fitness_of, 25):
        mean, std = theirs.tell(*pairs_apart(genomes, fitness))
        np.testing.assert_allclose(after.center.root.vector, mean, rtol=2e-4, atol=2e-4)
        np.testing.assert_allclose(after.spread, std, rtol=2e-4)
        theirs.state = theirs.state.replace(mean=after.center.root.vector, std=after.spread)  # roundings do not add up


@pytest.mark.parametrize("fitness_of", [sphere, rosenbrock])
def test_snes_goes_as_evosax_does(fitness_of):
    algorithm = SNES(population=30, sigma=0.3)
    theirs = Beside(evosax.SNES, 30)
    theirs.begin(START.root.vector, std_init=0.3)
    for _, genomes, fitness, after in generations(algorithm, fitness_of, 25):
        mean, std = theirs.tell(np.array([WEIGHTS.theta(genome) for genome in genomes]), fitness)
        np.testing.assert_allclose(after.center.root.vector, mean, rtol=2e-4, atol=2e-4)
        np.testing.assert_allclose(after.spread, std, rtol=2e-4)
        theirs.state = theirs.state.replace(mean=after.center.root.vector, std=after.spread)


def test_ars_goes_as_evosax_does():
    """evosax uses the top half of the directions, and an optimizer's learning rate."""
    import optax

    algorithm = ARS(population=40, top_directions=10, sigma=0.2, learning_rate=0.1)
    theirs = Beside(evosax.ARS, 40, optimizer=optax.sgd(0.1), std_schedule=optax.constant_schedule(0.2))
    theirs.begin(START.root.vector)
    for _, genomes, fitness, after in generations(algorithm, rosenbrock, 25):
        mean, _ = theirs.tell(*pairs_apart(genomes, fitness))
        np.testing.assert_allclose(after.center.root.vector, mean, rtol=2e-4, atol=2e-4)
        theirs.state = theirs.state.replace(mean=after.center.root.vector)


def test_canonical_es_is_float64s():
    """Chrabaszcz's algorithm 2 with Hansen's cumulative step-size adaptation, written from the papers."""
    algorithm = CanonicalES(population=24, parents=6, sigma=0.3)
    path, sigma = np.zeros(D), 0.3
    w = np.log(6.5) - np.log(np.arange(1, 7))
    w /= w.sum()
    mass = 1 / np.sum(w**2)
    c = (mass + 2) / (D + mass + 5)
    d = 1 + c + 2 * max(0, np.sqrt((mass - 1) / (D + 1)) - 1)
    for before, genomes, fitness, after in generations(algorithm, rosenbrock, 40):
        assert {genome.mutation.scale for genome in genomes} == {float(np.float32(before.sigma or 0.3))}
        best = np.argsort(-fitness)[:6]
        step = w @ noise_of(genomes)[best]
        expected = WEIGHTS.theta(before.center) + genomes[0].mutation.scale * step
        np.testing.assert_allclose(after.center.root.vector, expected, rtol=1e-5, atol=1e-5)
        path = (1 - c) * path + np.sqrt(c * (2 - c) * mass) * step
        sigma *= np.exp(c / d * (np.linalg.norm(path) / (np.sqrt(D) * (1 - 1 / (4 * D) + 1 / (21 * D**2))) - 1))
        assert after.sigma == pytest.approx(sigma, rel=1e-4)
    fixed = CanonicalES(population=24, parents=6, sigma=0.3, adapt_sigma=False)
    *_, (_, _, _, last) = generations(fixed, rosenbrock, 3)
    assert last.sigma == np.float32(0.3) and last.path is None


@pytest.mark.parametrize("fitness_of", [sphere, rosenbrock])
@pytest.mark.parametrize("kind", [CMAES, SepCMAES])
def test_cma_es_goes_as_cmaes_does(kind, fitness_of):
    """cmaes receives neuroevo's populations; its private state is compared through its pickle."""
    cmaes = pytest.importorskip("cmaes")
    theirs = (cmaes.CMA if kind is CMAES else cmaes.SepCMA)(
        START.root.vector.astype(np.float64), 0.3, population_size=20
    )
    for _, genomes, fitness, after in generations(kind(population=20, sigma=0.3), fitness_of, 60):
        theirs.tell(
            [(WEIGHTS.theta(genome).astype(np.float64), -value) for genome, value in zip(genomes, fitness, strict=True)]
        )
        known = vars(theirs)
        np.testing.assert_allclose(after.center.root.vector, theirs.mean, rtol=1e-3, atol=1e-4)
        assert after.sigma == pytest.approx(known["_sigma"], rel=1e-3)
        covariance = after.covariance if kind is CMAES else np.square(after.spread)
        np.testing.assert_allclose(covariance, known["_C"], rtol=5e-3, atol=1e-3)
        np.testing.assert_allclose(after.covariance_path, known["_pc"], rtol=5e-3, atol=1e-3)


def test_cma_es_learns_what_is_correlated():
    """The axes of the distribution adapt to those of an ellipsoid along the diagonals."""
    d = 10
    basis, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))
    scales, start = 10.0 ** np.linspace(0, 2, d), Genome(Center(np.linspace(-1.5, 1.5, d)))
    weights = NativeWeights([f"input float32 1; dense {d} 0.1"])

    def ellipsoid(theta):
        return -float(np.sum(scales * np.square(basis.T @ (np.asarray(theta, np.float64) - 0.5))))

    last, other = (
        list(generations(kind(population=20, sigma=0.3), ellipsoid, 150, start, weights=weights))[-1][-1]
        for kind in (CMAES, SepCMAES)
    )
    assert ellipsoid(last.center.root.vector) > -1e-5 > ellipsoid(other.center.root.vector)
    along = np.einsum("ij,ij->j", basis, last.covariance @ basis) * scales
    assert along.max() / along.min() < 10 < scales.max() / scales.min()


def test_cma_es_refuses_large_networks():
    weights = NativeWeights(["input float32 100; dense 51 0.1"])
    with pytest.raises(UserError, match="the network has 5,100 weights, expected at most 5,000 for cma_es"):
        CMAES().ask(CMAES().init(3), weights)
    assert len(SepCMAES().ask(SepCMAES().init(3), weights)) == 4 + int(3 * np.log(5100))


def test_states_of_cma_es_are_checked():
    *_, (_, _, _, last) = generations(CMAES(population=6), sphere, 1)
    for changes, message in (
        ({"lengths": -last.lengths}, "lengths have numbers that are not above 0"),
        ({"path": None}, "some of sigma, paths and matrices are missing"),
        ({"covariance": np.eye(3)}, r"the covariance is float64 \[3, 3\], expected float64 \[40, 40\]"),
        ({"sigma": -1.0}, "sigma is -1.0, expected a positive number"),
    ):
        with pytest.raises(ValueError, match=message):
            replace(last, **changes).check_state()


STRATEGIES = {
    "ars": ARS(population=40, sigma=0.05, learning_rate=0.05, top_directions=10),
    "canonical_es": CanonicalES(population=40, parents=10, sigma=0.3),
    "cma_es": CMAES(population=20, sigma=0.3),
    "pgpe": PGPE(population=40, sigma=0.1, optimizer=ClipUp(learning_rate=0.04)),
    "sep_cma_es": SepCMAES(population=40, sigma=0.3),
    "snes": SNES(population=40, sigma=0.3),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_valley_of_rosenbrock_is_followed(name):
    """test_algorithms.py covers a problem like sphere."""
    assert best_of(STRATEGIES[name], rosenbrock, 80) > 0.02 * rosenbrock(START.root.vector)


@pytest.mark.parametrize("name", STRATEGIES)
def test_nothing_is_learned_from_equal_returns(name):
    """The center stays or, if the noise of equal genomes is averaged, moves by at most that average."""
    ((_, genomes, _, after),) = generations(STRATEGIES[name], lambda theta: 2.0, 1)
    moved = after.center.root.vector - START.root.vector
    mean = np.mean([WEIGHTS.theta(genome) for genome in genomes], axis=0) - START.root.vector
    np.testing.assert_allclose(moved, mean if name in ("canonical_es", "cma_es", "sep_cma_es") else 0.0, atol=1e-5)


def test_a_population_grows_where_episodes_are_short():
    algorithm = PGPE(population=20, steps_per_generation=1000, max_population=60, sigma=0.1)
    state = algorithm.init(3, [START])
    for steps, expected in ((400, 50), (2500, 20), (100, 60), (3000, 20), (0, 60)):
        genomes = algorithm.ask(state, WEIGHTS)
        state = algorithm.tell(state, EvaluatedPopulation(genomes, np.zeros(len(genomes)), steps), WEIGHTS)
        assert state.members == expected == len(algorithm.ask(state, WEIGHTS))


def test_pgpe_takes_other_optimizers_and_keeps_sigma():
    algorithm = PGPE(population=30, sigma=0.25, optimizer=SGD(learning_rate=0.5, momentum=0.0), sigma_learning_rate=0.0)
    ((before, genomes, fitness, after),) = generations(algorithm, sphere, 1)
    assert genomes[0].mutation.kind == Scaled(Center(np.full(D, 0.25)))
    ranks = (rankdata(fitness) - 15.5) / 29
    gradient = (ranks[::2] - ranks[1::2]) @ noise_of(genomes[::2]) * 0.25 / 30
    np.testing.assert_allclose(after.center.root.vector - before.center.root.vector, 0.5 * gradient, atol=1e-5)
    np.testing.assert_array_equal(after.spread, np.float32(0.25))


def test_clipup_by_hand():
    optimizer = ClipUp(learning_rate=5.0, momentum=0.5)
    step, state = optimizer.step(optimizer.init(2), np.array([3.0, -4.0], np.float32))
    np.testing.assert_allclose(step, [-3.0, 4.0], rtol=1e-6)  # of length 5, however long the gradient is
    step, state = optimizer.step(state, np.array([300.0, -400.0], np.float32))
    np.testing.assert_allclose(step, [-4.5, 6.0], rtol=1e-6)
    step, state = optimizer.step(state, np.array([0.0, -1e-20], np.float32))
    np.testing.assert_allclose(step, np.array([-2.25, 8.0]), rtol=1e-6)
    step, state = optimizer.step(state, np.array([-9.0, -12.0], np.float32))
    speed = np.hypot(1.875, 8.0)
    np.testing.assert_allclose(step, [1.875, 8.0], rtol=1e-6)
    assert speed < 10
    step, state = optimizer.step(state, np.array([0.0, -1.0], np.float32))
    np.testing.assert_allclose(step, [0.9375, 9.0], rtol=1e-6)
    step, state = optimizer.step(state, np.array([0.0, -1.0], np.float32))
    np.testing.assert_allclose(step, [0.46875, 9.5], rtol=1e-6)
    fast = ClipUp(learning_rate=5.0, momentum=0.5, max_speed=6.0)
    step, _ = fast.step(state, np.array([0.0, -1.0], np.float32))
    np.testing.assert_allclose(np.linalg.norm(step), 6.0, rtol=1e-6)
    np.testing.assert_allclose(step, np.array([0.234375, 9.75]) * 6 / np.hypot(0.234375, 9.75), rtol=1e-6)
    still, _ = optimizer.step(optimizer.init(2), np.zeros(2, np.float32))
    np.testing.assert_array_equal(still, 0.0)


def test_exponentials():
    x = np.linspace(-2, 2, 4001, dtype=np.float32)
    np.testing.assert_allclose(_exp(x), np.exp(np.clip(x, -1.0, 1.0)), rtol=2e-6)


def test_equal_ranks_share_their_weight():
    found = rank_weights(np.array([1.0, 5.0, 5.0, 0.0, 1.0]), np.array([6.0, 2.0, 1.0, 1.0, -3.0]))
    np.testing.assert_allclose(found, [0.1, 0.4, 0.4, 0.0, 0.1])


def test_top_directions_and_parents_are_checked():
    with pytest.raises(ValueError, match="top_directions is 21, expected at most the 20 pairs"):
        ARS(population=40, top_directions=21)
    with pytest.raises(ValueError, match="parents is 41, expected at most the population, 40"):
        CanonicalES(population=40, parents=41)


def test_the_weight_of_reward_follows_progress():
    algorithm = NSRAES(population=2, centers=1, k=1, reward_weight=0.5, weight_step=0.25, patience=3)
    state = algorithm.init(3, [START])
    weights, waited = [], []
    for validation in (1.0, 2.0, 2.0, 1.5, 2.0, 2.0, 3.0, 9.0, 9.5, 9.6):
        genomes = algorithm.ask(state, WEIGHTS)
        rows = np.arange(2.0 * len(genomes)).reshape(-1, 2)
        state = algorithm.tell(state, EvaluatedPopulation(genomes, np.zeros(len(genomes)), behaviors=rows), WEIGHTS)
        candidates = algorithm.candidates(state)
        fitness = np.full(len(candidates), validation)
        behaviors = np.full((len(candidates), 2), validation)
        state = algorithm.tell_validation(state, EvaluatedPopulation(candidates, fitness, behaviors=behaviors))
        weights.append(state.reward_weight)
        waited.append(state.waited)
    assert weights == [0.5, 0.75, 0.75, 0.75, 0.5, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert waited == [1, 0, 1, 2, 0, 1, 0, 0, 0, 0]
    assert algorithm.metrics(state, state)["reward_weight"] == 1.0
    with pytest.raises(ValueError, match="reward_weight is 1.5"):
        replace(state, reward_weight=1.5).check_state()
