"""Episodes in refilled lanes have the same outcomes as a plain loop over each episode."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.network import Network

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60
NORMALIZER = Normalizer(1, np.array([0.1, -0.2]), np.array([0.5, 2.0]))


class Slide:
    """Simulator of a pushed point that slides off a table: position and speed; the reward decreases from 1."""

    observation_size, action_size = 2, 1

    def __init__(self, breaks_at=np.inf):
        self.breaks_at = breaks_at

    @property
    def state(self):
        import jax  # not at the top, where every process that collects tests would start JAX's threads

        return jax.ShapeDtypeStruct((2,), np.float32)

    def reset(self, key):
        import jax

        return jax.random.uniform(key, (2,), np.float32, -0.5, 0.5)

    def observation(self, state):
        return state

    def step(self, state, action):
        import jax.numpy as jnp

        speed = state[1] + 0.125 * action[0] + 0.0625 * state[0]
        place = state[0] + 0.25 * speed
        place = jnp.where(place > self.breaks_at, jnp.nan, place)
        return jnp.stack([place, speed]), 1 - place * place, jnp.abs(place) > 1


def played_in_numpy(theta, seed, max_steps, normalizer=None, breaks_at=np.inf):
    """Compute return, steps, observation sums and failure of an episode in float64 by a plain loop."""
    kernels = theta[:8].reshape(2, 4), theta[12:16].reshape(4, 1)
    place, speed = np.asarray(Slide().reset(np.array(divmod(seed, 2**32), np.uint32)), np.float64)
    total, sums, steps = 0.0, np.zeros(4), 0
    while True:
        seen = np.array([place, speed])
        sums += [*seen, *seen**2]
        if normalizer is not None:
            seen = np.clip((seen - normalizer.mean) / normalizer.std, -5, 5)
        action = np.tanh(np.tanh(seen @ kernels[0] + theta[8:12]) @ kernels[1] + theta[16:])
        speed = speed + 0.125 * action[0] + 0.0625 * place
        place = place + 0.25 * speed
        steps += 1
        if place > breaks_at:
            return total, steps, sums, True
        total += 1 - place * place
        if abs(place) > 1 or steps >= min(max_steps or LIMIT, LIMIT):
            return total, steps, sums, False


SLIDE = Slide()  # JAX finds again what it has compiled for the same object


def make(lanes, simulator=SLIDE, normalized=False, **options):
    from neuroevo.accelerated.evaluator import AcceleratedEvaluator

    network = Network("mlp", hidden=(4,), normalize_observations=normalized)
    return AcceleratedEvaluator(simulator, network, max_episode_steps=LIMIT, lanes=lanes, **options)


def episodes(count, max_steps=0, normalizer=None):
    return [Episode(Genome(5).child(i // 2, 1.0), 2**40 + 7 * i, max_steps, normalizer) for i in range(count)]


@pytest.fixture(scope="module")
def evaluator():
    with make(8) as made:
        yield made


def theta_of(evaluator, episode):
    return NativeWeights(evaluator.network_texts).theta(episode.genome)


@pytest.mark.parametrize("max_steps", [0, 1, 7])
def test_every_episode_is_that_of_a_plain_loop(evaluator, max_steps):
    asked = episodes(50, max_steps)
    outcomes = evaluator.evaluate(asked)
    expected = [played_in_numpy(theta_of(evaluator, each), each.seed, max_steps) for each in asked]
    np.testing.assert_array_equal(outcomes.steps, [each[1] for each in expected])
    np.testing.assert_allclose(outcomes.returns, [each[0] for each in expected], rtol=1e-5)
    assert outcomes.failures == {} and outcomes.observation_sums is None
    assert max_steps or len(set(outcomes.steps)) > 10  # so that lanes are refilled at all times


def test_lanes_steps_and_order_do_not_matter(evaluator):
    asked = episodes(40)
    outcomes = evaluator.evaluate(asked)
    for lanes, steps in [(2, 64), (7, 5)]:  # of which only 7 are halved
        with make(lanes, steps=steps) as other:
            found = other.evaluate(asked[::-1])
        np.testing.assert_array_equal(found.returns[::-1], outcomes.returns)
        np.testing.assert_array_equal(found.steps[::-1], outcomes.steps)


def test_normalized_observations_and_their_sums():
    asked = episodes(30, normalizer=NORMALIZER)
    with make(8, normalized=True) as evaluator:
        outcomes = evaluator.evaluate(asked)
        expected = [played_in_numpy(theta_of(evaluator, each), each.seed, 0, NORMALIZER) for each in asked]
        np.testing.assert_array_equal(outcomes.steps, [each[1] for each in expected])
        sums = sum(each[2] for each in expected)
        np.testing.assert_allclose(outcomes.observation_sums, [outcomes.steps.sum(), *sums], rtol=1e-5)
        again = evaluator.evaluate(asked)
        np.testing.assert_array_equal(again.observation_sums, outcomes.observation_sums)


def test_a_simulation_that_fails():
    asked = episodes(30)
    with make(8, Slide(breaks_at=0.75)) as evaluator:
        outcomes = evaluator.evaluate(asked)
        expected = [played_in_numpy(theta_of(evaluator, each), each.seed, 0, breaks_at=0.75) for each in asked]
    assert 0 < len(outcomes.failures) < 30
    assert sorted(outcomes.failures) == [index for index, each in enumerate(expected) if each[3]]
    np.testing.assert_array_equal(outcomes.steps, [each[1] for each in expected])
    np.testing.assert_allclose(outcomes.returns, [each[0] for each in expected], rtol=1e-5, atol=1e-6)


def test_batches_that_nobody_waits_for_are_played_later(evaluator):
    early, wanted, late = (evaluator.submit(episodes(count)) for count in (3, 10, 5))
    evaluator.wait(wanted)
    assert not wanted.left and not late.left  # what came after it fills its lanes
    assert early.left == 3  # few, so they wait for more
    many = [evaluator.submit(episodes(20)) for _ in range(2)]
    newest = evaluator.submit(episodes(4))
    evaluator.wait(newest)
    assert [each.left for each in (early, *many, newest)] == [0, 0, 0, 0]
    for batch in (early, *many, newest):
        alone = evaluator.evaluate(episodes(len(batch.steps)))
        np.testing.assert_array_equal(batch.returns, alone.returns)


def test_little_is_idle():
    with make(8) as evaluator:
        evaluator.evaluate(episodes(600))
        assert evaluator.useful_share > 0.9


def test_the_longest_are_played_by_half_of_the_lanes(evaluator):
    before = evaluator.lane_steps
    steps = np.sort(evaluator.evaluate(episodes(8)).steps)
    assert steps[3] < steps[7]
    assert evaluator.lane_steps - before == 8 * steps[3] + 4 * (steps[7] - steps[3])


def test_watched_episodes_show_every_state():
    from neuroevo.accelerated.playback import watch

    asked = episodes(20)
    with make(8, steps=1) as evaluator:
        unwatched = evaluator.evaluate(asked[::-1])
        outcomes, states = watch(evaluator, asked, lambda state: state)
        np.testing.assert_array_equal(outcomes.returns, unwatched.returns[::-1])
        for steps, seen in zip(outcomes.steps, states, strict=True):
            assert len(seen) == steps + 1
            places, speeds = np.array(seen).T
            np.testing.assert_array_equal(places[1:], places[:-1] + np.float32(0.25) * speeds[1:])


def test_two_devices_play_the_same_episodes(evaluator):
    program = (
        "from neuroevo.accelerated.start import start_jax\n"
        "start_jax(2)\n"
        "from tests.accelerated.test_lanes import episodes, make\n"
        "with make(8, devices=2) as evaluator:\n"
        "    outcomes = evaluator.evaluate(episodes(41))\n"
        "    print(evaluator._programs.devices, outcomes.returns.tolist(), outcomes.steps.tolist(), sep='\\n')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    outcomes = evaluator.evaluate(episodes(41))
    devices, returns, steps = map(json.loads, run.stdout.splitlines())
    assert (devices, returns, steps) == (2, outcomes.returns.tolist(), outcomes.steps.tolist())


def test_lanes_are_shared_out_among_devices():
    with pytest.raises(UserError, match="devices is 99, expected a number in"):
        make(8, devices=99)
    with pytest.raises(UserError, match="lanes is 1, expected a multiple of the 1 devices, at least 2"):
        make(1)
