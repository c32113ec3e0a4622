"""Vector actions, normalized observations and results of episodes: the ops, the C interface and NumPy agree, and the
TensorFlow graph agrees with the native lane runner for any number of lanes, slots and threads."""

import functools
import math
import threading

import gymnasium
import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import Episode
from neuroevo.core.errors import NativeError
from neuroevo.core.genome import Genome, grow
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.submission import pack
from neuroevo.networks.architectures import input_line, to_text
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.native_rollout import run_episodes

ERRORS = (tf.errors.InvalidArgumentError, tf.errors.NotFoundError)
NONE = np.zeros(0, np.int64)
FLOATS = st.floats(width=32) | st.sampled_from([-1.0, 1.0, 0.0, math.nan, math.inf, -math.inf])


def int64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def make(name: str, slots: int = 1) -> tuple[tf.Tensor, EnvPool]:
    """Return the same environments twice: a pool of the ops and one of the C interface."""
    recipe = registry.resolve(name)
    handle = load_ops().env_pool_make(family=recipe.family, options=list(recipe.options), slots=slots)
    return handle, EnvPool(recipe, slots)


@functools.cache
def shared(name: str) -> tuple[tf.Tensor, EnvPool]:
    return make(name)


@pytest.mark.parametrize("name", ["HalfCheetah-v5", "Humanoid-v5", "InvertedPendulum-v5", "Pusher-v5"])
def test_the_bounds_are_those_of_the_action_space(name):
    spec, space = load_ops().env_pool_spec(shared(name)[0]), gymnasium.make(name).action_space
    assert spec.action_low.dtype == spec.action_high.dtype == tf.float32
    assert np.array_equal(spec.action_low, space.low) and np.array_equal(spec.action_high, space.high)


def numbers(outputs: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The action map in NumPy's float32: a number per action, or bins."""
    low, high = low.astype(np.float32), high.astype(np.float32)
    if outputs.shape[1] == len(low):
        return low + (np.clip(outputs, np.float32(-1), np.float32(1)) + np.float32(1)) / np.float32(2) * (high - low)
    grouped = outputs.reshape(len(outputs), len(low), outputs.shape[1] // len(low))
    best = np.where(np.isnan(grouped), -np.inf, grouped).argmax(2).astype(np.float32)
    values = low + best * (high - low) / np.float32(grouped.shape[2] - 1)
    return np.where(np.isnan(grouped).all(2), np.float32(np.nan), values)


def assert_actions(name: str, outputs: np.ndarray, expected: np.ndarray) -> None:
    handle, pool = shared(name)
    assert expected.dtype == pool.action_dtype
    np.testing.assert_array_equal(pool.actions(outputs), expected)
    op = load_ops().env_actions(handle, outputs, T=tf.as_dtype(expected.dtype))
    assert op.dtype == expected.dtype and op.shape == expected.shape
    np.testing.assert_array_equal(op, expected)


@settings(max_examples=60)
@given(
    name=st.sampled_from(["Humanoid-v5", "InvertedPendulum-v5", "Hopper-v5"]), bins=st.integers(1, 5), data=st.data()
)
def test_vectors_are_those_of_numpy(name, bins, data):
    pool = shared(name)[1]
    shape = (data.draw(st.integers(0, 4)), pool.num_actions * bins)
    outputs = data.draw(arrays.arrays(np.float32, shape, elements=FLOATS))
    assert_actions(name, outputs, numbers(outputs, pool.action_low, pool.action_high))


@settings(max_examples=40)
@given(outputs=arrays.arrays(np.float32, st.tuples(st.integers(0, 4), st.just(18)), elements=FLOATS))
def test_discrete_actions_are_those_of_numpy(outputs):
    assert_actions("frostbite", outputs, np.where(np.isnan(outputs), -np.inf, outputs).argmax(1).astype(np.int32))


def test_denormal_outputs_are_not_zero():
    # TensorFlow's threads flush them to zero.
    outputs = np.zeros((1, 18), np.float32)
    outputs[0, 7] = 1e-45
    assert_actions("frostbite", outputs, np.array([7], np.int32))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("frostbite", (2, 17), "the networks have 17 outputs, expected one per action: 18"),
        ("frostbite", (0, 36), "the networks have 36 outputs, expected one per action: 18"),
        (
            "Hopper-v5",
            (2, 4),
            "the networks have 4 outputs, expected one per action: 3, or 2 or more bins per action: ",
        ),
        ("Hopper-v5", (1, 0), "the networks have 0 outputs, expected one per action: 3"),
    ],
)
def test_outputs_of_a_wrong_width(name, shape, message):
    handle, pool = shared(name)
    with pytest.raises(NativeError, match=message):
        pool.actions(np.zeros(shape, np.float32))
    with pytest.raises(ERRORS, match=message):
        load_ops().env_actions(handle, np.zeros(shape, np.float32), T=tf.as_dtype(pool.action_dtype))


def test_many_outputs_of_no_width():
    with pytest.raises(ERRORS, match="0 outputs, .*: 3"):
        load_ops().env_actions(shared("Hopper-v5")[0], tf.zeros([2**62, 0]), T=tf.float32)


def test_outputs_of_a_wrong_rank_or_kind():
    handle, pool = shared("Hopper-v5")
    with pytest.raises(ValueError, match=r"outputs .*\[3\], .*\[K, W\]"):
        pool.actions(np.zeros(3, np.float32))
    with pytest.raises(ERRORS, match=r"'outputs' .*\[3\], .*\[K, W\]"):
        load_ops().env_actions(handle, np.zeros(3, np.float32), T=tf.float32)
    with pytest.raises(ERRORS, match="attr 'T' is int32, .*float32"):
        load_ops().env_actions(handle, np.zeros((1, 3), np.float32), T=tf.int32)
    with pytest.raises(ERRORS, match="attr 'T' is float, .*int32"):
        load_ops().env_actions(shared("frostbite")[0], np.zeros((1, 18), np.float32), T=tf.float32)


def test_shapes_in_a_graph():
    handle, _ = shared("Hopper-v5")
    shapes = {}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None, 3], tf.float32)])
    def look(slots, outputs):
        shapes["seen"] = load_ops().env_normalized_observation(handle, slots, shape=[11]).shape.as_list()
        shapes["number"] = load_ops().env_actions(handle, outputs, T=tf.int32).shape.as_list()
        shapes["vector"] = load_ops().env_actions(handle, outputs, T=tf.float32).shape.as_list()
        queue = load_ops().episode_queue_make(lanes=1, slots_per_lane=1, first_row=0)
        shapes["results"] = [output.shape.as_list() for output in load_ops().episode_queue_results(queue, 0, 0)]

    look.get_concrete_function()
    assert shapes == {
        "seen": [None, 11],
        "number": [None],
        "vector": [None, None],
        "results": [[None], [None], [None], [None], [None], [None, None], [None, None], []],
    }


def random_normalizer(size: int, number: int = 0, seed: int = 0) -> Normalizer:
    rng = np.random.default_rng(seed)
    return Normalizer(number, rng.normal(size=size), rng.uniform(0.05, 2, size))


def normalized(raw: np.ndarray, normalizer: Normalizer | None) -> np.ndarray:
    if normalizer is None:
        return raw.astype(np.float32)
    return np.clip((raw - normalizer.mean) / normalizer.std, -5, 5).astype(np.float32)


def sums_of(seen: list[np.ndarray]) -> np.ndarray:
    """Return the count, sums and sums of squares, accumulated observation by observation."""
    total = np.zeros(1 + 2 * len(seen[0]))
    for raw in seen:
        total += np.concatenate([[1], raw, raw * raw])
    return total


def queue_of(episodes: list[int], normalizers: list[int]) -> tf.Tensor:
    """Return a queue of one lane with a slot for each of these episodes of one genome, which the slots have taken."""
    queue = load_ops().episode_queue_make(lanes=1, slots_per_lane=len(episodes), first_row=0)
    each = int64(*([0] * len(episodes)))
    genome = int64(1), np.zeros(1, np.int32), int64(-1), int64(5), int64(-1)
    chain, thetas = (int64(0, 0), NONE, np.zeros(0, np.float32), NONE), np.zeros((0, 0), np.float32)
    arrays = int64(*episodes), each, each, each, int64(*normalizers), *genome, *chain, thetas
    load_ops().episode_queue_submit(queue, *arrays, int64(0)[0])
    load_ops().episode_queue_take(queue, 0)
    return queue


def test_normalized_observations_and_their_sums_are_those_of_numpy():
    handle, pool = make("HalfCheetah-v5", slots=3)
    ours = random_normalizer(17)
    pool.set_normalizer(0, ours.mean, ours.std)
    load_ops().env_set_normalizer(handle, 0, ours.mean, ours.std)
    slots, seeds, frames = int64(0, 1, 2), int64(5, 6, 7), int64(20, 20, 20)
    queue = queue_of([40, 41, 42], [0, 0, -1])
    pool.reset(slots, seeds, frames, [0, 0, -1])
    load_ops().env_reset(handle, slots, seeds, frames, int64(0, 0, -1))
    rng, seen, clipped, returns = np.random.default_rng(1), ([], []), False, np.zeros(3)
    for step in range(4):
        raw = pool.observe(slots)
        expected = np.stack([normalized(raw[k], ours if k < 2 else None) for k in range(3)])
        shown = pool.observe_normalized(slots)
        assert shown.dtype == np.float32 and np.array_equal(shown, expected)
        assert np.array_equal(load_ops().env_normalized_observation(handle, slots, shape=[17]), expected)
        clipped = clipped or bool((np.abs(expected[:2]) == 5).any())
        for k in range(2):
            seen[k].append(raw[k])
        actions = rng.uniform(-1, 1, (3, 6)).astype(np.float32)
        rewards, dones = pool.step(slots, actions)
        assert dones.tolist() == [step == 3] * 3
        returns += rewards
        put = load_ops().episode_queue_put(queue, handle, 0, slots, *load_ops().env_step(handle, slots, actions)[:2])
        assert put.live_slots.shape[0] == (0 if step == 3 else 3)
    assert clipped
    results = load_ops().episode_queue_results(queue, 3, 0)
    assert results.episode_ids.numpy().tolist() == [40, 41, 42] and np.array_equal(results.returns, returns)
    assert results.failures.numpy().tolist() == [b""] * 3 and results.steps.numpy().tolist() == [4] * 3
    assert results.behaviors.shape == (3, 0)  # not requested
    assert np.array_equal(results.observation_sums, [*map(sums_of, seen), np.zeros(35)])  # the last: no normalizer
    again = load_ops().episode_queue_results(queue, 0, 0)
    assert again.episode_ids.shape == (0,) and again.observation_sums.shape == (0, 0)


def test_what_ends_without_a_normalizer():
    handle, pool = make("Hopper-v5", slots=2)
    actions = np.array([[0, np.nan, 0], [0, 0, 0]], np.float32)
    pool.reset([0, 1], [1, 2], [4, 4])
    assert pool.step([0, 1], actions)[1].tolist() == [True, True]
    failure = "action[1] is nan, expected a finite number"
    assert (pool.failure(0), pool.failure(1)) == (failure, "")
    queue, slots = queue_of([8, 9], [-1, -1]), int64(0, 1)
    load_ops().env_reset(handle, slots, int64(1, 2), int64(4, 4), NONE)
    rewards, dones, _ = load_ops().env_step(handle, slots, actions)
    load_ops().env_set_normalizer(handle, 3, np.zeros(11), np.ones(11))
    load_ops().episode_queue_put(queue, handle, 0, slots, rewards, dones)
    results = load_ops().episode_queue_results(queue, 2, 0)
    assert results.episode_ids.numpy().tolist() == [8, 9]
    assert results.failures.numpy().tolist() == [failure.encode(), b""]
    assert results.observation_sums.shape == (2, 0)


def test_a_step_that_the_pool_has_not_made_is_not_booked():
    handle, _ = make("Hopper-v5", slots=2)
    queue, slots = queue_of([8, 9], [-1, -1]), int64(0, 1)
    load_ops().env_reset(handle, slots, int64(1, 2), int64(0, 0), NONE)
    with pytest.raises(ERRORS, match="slot 1 "):
        load_ops().episode_queue_put(queue, handle, 0, slots, np.zeros(2), np.array([False, True]))
    assert load_ops().episode_queue_results(queue, 0, 0).total_steps == 0


def test_bad_normalizers():
    handle, pool = make("Hopper-v5", slots=2)
    good = np.zeros(11), np.ones(11)
    for set_normalizer, drop, errors in (
        (pool.set_normalizer, pool.drop_normalizers, NativeError),
        (
            functools.partial(load_ops().env_set_normalizer, handle),
            lambda given: load_ops().env_drop_normalizers(handle, int64(*given)),
            ERRORS,
        ),
    ):
        set_normalizer(1, *good)
        set_normalizer(1, *good)
        for number, mean, std, message in (
            (1, np.ones(11), good[1], "normalizer 1 is already set to different values, expected an unused number"),
            (-1, *good, "number of a normalizer is -1, expected 0 or more"),
            (2, np.zeros(12), np.ones(12), "mean has 12 values, expected one per value of an observation: 11"),
            (2, np.full(11, np.nan), good[1], r"mean\[0\] is nan, expected a finite number"),
            (2, good[0], np.array([1.0] * 10 + [0]), r"std\[10\] is 0, expected a finite number above 0"),
            (2, good[0], np.array([1.0, np.inf] + [1] * 9), r"std\[1\] is inf, expected a finite number above 0"),
        ):
            with pytest.raises(errors, match=message):
                set_normalizer(number, mean, std)
        with pytest.raises(errors, match="normalizer 2 "):
            drop([1, 2])
        drop([1])
        with pytest.raises(errors, match="normalizer 1 "):
            drop([1])
    with pytest.raises(ValueError, match=r"std .*\[10\], .*\[11\]"):
        pool.set_normalizer(1, np.zeros(11), np.ones(10))
    with pytest.raises(ERRORS, match="std .* 10 .*: 11"):
        load_ops().env_set_normalizer(handle, 1, np.zeros(11), np.ones(10))
    with pytest.raises(NativeError, match="normalizer 4 "):
        pool.reset([0, 1], [1, 2], [0, 0], [-1, 4])
    game, games = shared("frostbite")
    games.reset([0], [1], [0])
    load_ops().env_reset(game, int64(0), int64(1), int64(0), NONE)
    message = "the environment's observations are uint8, expected float32 or float64"
    with pytest.raises(NativeError, match=message):
        games.observe_normalized([0])
    with pytest.raises(ERRORS, match=message):
        load_ops().env_normalized_observation(game, int64(0), shape=[84, 84, 4])
    with pytest.raises(ERRORS, match=message):
        load_ops().env_set_normalizer(game, 0, np.zeros(28224), np.ones(28224))


LOST = ((1, float(np.finfo(np.float32).max)),) * 3  # weights of infinity, so that outputs are NaN
TASKS = {  # name: network, and maximum number of steps
    "InvertedPendulum-v5": (Network("mlp", hidden=(6,)), 30),
    "HalfCheetah-v5": (Network("mlp", hidden=(8, 8), action_bins=5), 12),
}


@functools.cache
def episodes_of(name: str) -> tuple[Episode, ...]:
    """Return 24 episodes of 8 genomes, two of them invalid, with three normalizers and without one."""
    size = math.prod(EnvPool(registry.resolve(name), 1).observation_shape)
    normalizers = [None, *(random_normalizer(size, number, seed=number) for number in (3, 4, 5))]
    genomes = [grow(Genome(base), LOST if base in (2, 5) else ((base + 50, 0.2),) * (base % 3)) for base in range(8)]
    steps = TASKS[name][1]
    return tuple(Episode(genomes[e % 8], 100 + e, steps - e % 5, normalizers[e // 8 % 4]) for e in range(32))


def in_numpy(name: str) -> list[tuple[float, int, str, np.ndarray | None]]:
    """Return the returns, steps, failures and observation sums, with the policy and the normalization in NumPy."""
    pool, network = EnvPool(registry.resolve(name), 1), TASKS[name][0]
    layers = network.lines(input_line("float64", pool.observation_shape), pool.num_actions, continuous_actions=True)
    population, played = Population([to_text(layers)], 1, "reference"), []
    for episode in episodes_of(name):
        population.init([0], [0], [episode.genome.root])
        for seed, scale, _ in episode.genome.mutations:
            population.perturb([0], [0], [seed], [scale])
        pool.reset([0], [episode.seed], [episode.max_steps * pool.frame_skip])
        total, seen, done = 0.0, [], False
        while not done:
            seen.append(pool.observe([0])[0])
            outputs = population.forward([0], normalized(seen[-1], episode.normalizer)[None], population.outputs)
            actions = numbers(outputs, pool.action_low, pool.action_high)
            rewards, dones = pool.step([0], actions)
            total, done = total + rewards[0], dones[0]
        played.append((total, len(seen), pool.failure(0), sums_of(seen) if episode.normalizer else None))
    return played


@functools.cache
def expected_of(name: str) -> list[tuple[float, int, str, np.ndarray | None]]:
    played = in_numpy(name)
    assert len({total for total, *_ in played}) > 10
    for episode, (_, steps, failure, _) in zip(episodes_of(name), played, strict=True):
        lost = episode.genome.mutations == grow(Genome(0), LOST).mutations
        assert (failure == "action[0] is nan, expected a finite number") == lost
        assert steps == 1 if lost else failure == "" and steps > 1
    return played


def assert_played(name: str, outcomes) -> None:
    expected = expected_of(name)
    assert outcomes.returns.tolist() == [total for total, *_ in expected]
    assert outcomes.steps.tolist() == [steps for _, steps, *_ in expected]
    assert dict(outcomes.failures) == {e: failure for e, (*_, failure, _) in enumerate(expected) if failure}
    total = np.zeros(len(outcomes.observation_sums))
    for *_, failure, sums in expected:
        total += 0 if failure or sums is None else sums
    assert np.array_equal(outcomes.observation_sums, total) and total[0] > 100


@pytest.fixture
def threads():
    before = library.get_threads()
    yield
    library.set_threads(before)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize(("lanes", "slots", "threads_used"), [(1, 1, 1), (2, 3, 2), (2, 3, 4)])
def test_the_engines_and_the_lane_runner_play_the_same(name, lanes, slots, threads_used, threads, engine):
    network = TASKS[name][0]
    layout = {"lanes": lanes, "slots": slots, "threads": threads_used}
    with LocalEvaluator(name, network, **layout, device="cpu", engine=engine) as evaluator:
        assert_played(name, evaluator.evaluate(episodes_of(name)))
        assert_played(name, evaluator.evaluate(episodes_of(name)))  # with the rows and slots that were used before
    layers = functools.partial(network.lines, continuous_actions=True)
    assert_played(name, run_episodes(registry.resolve(name), [layers], episodes_of(name), lanes=lanes, slots=slots))


def test_normalizers_are_set_beside_the_lanes(threads, engine):
    name, (network, _) = "InvertedPendulum-v5", TASKS["InvertedPendulum-v5"]
    with LocalEvaluator(name, network, lanes=2, slots=2, threads=2, device="cpu", engine=engine) as evaluator:
        pool, over = evaluator._parts[0], threading.Event()

        def set_others():
            number = 1_000_000
            while not over.is_set():
                pool.set_normalizer(number, np.zeros(4), np.ones(4))
                pool.drop_normalizers([number])
                number += 1

        other = threading.Thread(target=set_others)
        other.start()
        try:
            assert_played(name, evaluator.evaluate(episodes_of(name)))
        finally:
            over.set()
            other.join()


def test_the_queue_hands_normalizers_to_the_slots():
    with pytest.raises(ERRORS, match=r"'episode_normalizers' .*\[1\], .*\[2\]"):
        queue_of([20, 21], [4])
    with pytest.raises(ERRORS, match="normalizer of episode 21 is -2"):
        queue_of([20, 21], [4, -2])
    queue = load_ops().episode_queue_make(lanes=1, slots_per_lane=3, first_row=0)
    episodes = [Episode(Genome(1), seed, normalizer=each) for seed, each in ((3, random_normalizer(11)), (4, None))]
    submission = pack(episodes, frame_skip=4, dimensions=[7], first_id=20, normalizers={episodes[0].normalizer: 4})
    load_ops().episode_queue_submit(queue, **submission.arrays(), priority=0)
    take = load_ops().episode_queue_take(queue, int64(0)[0])
    assert take.slots.numpy().tolist() == [0, 1]
    assert take.seeds.numpy().tolist() == [3, 4] and take.normalizers.numpy().tolist() == [4, -1]


def test_networks_that_do_not_fit_are_refused():
    recipe: EnvSpec = registry.resolve("Hopper-v5")

    def four(observation, actions):
        return [observation, f"dense {actions + 1} 1.0"]

    with pytest.raises(NativeError, match="4 outputs, .*: 3, .*bins"):
        run_episodes(recipe, [four], [Episode(Genome(1), 1)], lanes=1, slots=1)
