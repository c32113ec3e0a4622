"""Invalid input to the environment ops: a Python exception with the value and the valid range, and a pool that remains
usable. (tests/native/envs/env_pool_errors_test.cc tests exceptions inside an environment.)"""

import threading

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeError
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from neuroevo.rollout.tensorflow.ops import load_ops

SLOTS = 3
ERRORS = (tf.errors.InvalidArgumentError, tf.errors.NotFoundError)


def int64(*values):
    return np.array(values, np.int64)


def int32(*values):
    return np.array(values, np.int32)


def make(**given):
    recipe = registry.resolve("freeway")
    attributes = {"family": recipe.family, "options": list(recipe.options), "slots": SLOTS, **given}
    return load_ops().env_pool_make(**attributes)


def reset(pool, slots=(0,), seeds=(7,), max_frames=(0,), normalizers=()):
    load_ops().env_reset(pool, *(int64(*values) for values in (slots, seeds, max_frames, normalizers)))


def observe(pool, *slots):
    return load_ops().env_observation(pool, int64(*slots), dtype=tf.uint8, shape=[84, 84, 4]).numpy()


@pytest.fixture(scope="module")
def shared_pool():
    return make()


@pytest.fixture
def pool(shared_pool):
    """A pool after two steps of slot 0, with slot 1 at its start and slot 2's episode over. Check after the test's
    invalid input that slots 0 and 1 are unchanged and still usable."""
    ops = load_ops()
    reset(shared_pool, (0, 1, 2), (1, 2, 3), (0, 0, 4))
    for _ in range(2):
        ops.env_step(shared_pool, int64(0), int32(1))
    ops.env_step(shared_pool, int64(2), int32(0))
    before = observe(shared_pool, 0, 1)
    yield shared_pool
    assert np.array_equal(observe(shared_pool, 0, 1), before)
    rewards, dones, _ = ops.env_step(shared_pool, int64(1, 0), int32(1, 2))
    assert rewards.numpy().tolist() == [0, 0] and not dones.numpy().any()
    reset(shared_pool, (2,), (3,), (4,))
    assert ops.env_step(shared_pool, int64(2), int32(0)).dones.numpy().tolist() == [True]


RESET = [
    ({"slots": (SLOTS,)}, r"slot 3 is out of range \[0, 3\)"),
    ({"slots": (-1,)}, r"slot -1 is out of range \[0, 3\)"),
    ({"slots": (-(2**63),)}, r"slot -9223372036854775808 is out of range \[0, 3\)"),
    ({"slots": (2**63 - 1,)}, r"slot 9223372036854775807 is out of range \[0, 3\)"),
    ({"slots": (0, SLOTS), "seeds": (7, 8), "max_frames": (0, 0)}, r"slot 3 is out of range \[0, 3\)"),
    ({"slots": (1, 0, 1), "seeds": (7, 8, 9), "max_frames": (0, 0, 0)}, "slot 1 occurs more than once in one call"),
    ({"slots": (0, 1)}, r"input 'seeds' has shape \[1\], expected \[2\]"),
    ({"max_frames": (0, 0)}, r"input 'max_frames' has shape \[2\], expected \[1\]"),
    ({"max_frames": (-1,)}, "max_frames of slot 0 is -1, expected 0 or more"),
    ({"normalizers": (-1, -1)}, "normalizers has 2 values, expected one per slot: 1"),
    ({"normalizers": (7,)}, "normalizer 7 is not set"),
    ({"normalizers": (-2,)}, "normalizer -2 is not set"),
]


@pytest.mark.parametrize(("given", "message"), RESET)
def test_bad_resets(pool, given, message):
    with pytest.raises(ERRORS, match=message):
        reset(pool, **given)


STEP = [
    ([SLOTS], [0], r"slot 3 is out of range \[0, 3\)"),
    ([0, -2], [0, 0], r"slot -2 is out of range \[0, 3\)"),
    ([0, 1, 0], [0, 0, 0], "slot 0 occurs more than once in one call, expected different slots"),
    ([0, 1], [0, 3], r"action 3 of slot 1 is out of range \[0, 3\)"),
    ([0, 1], [-1, 0], r"action -1 of slot 0 is out of range \[0, 3\)"),
    ([1], [2**31 - 1], r"action 2147483647 of slot 1 is out of range \[0, 3\)"),
    ([0, 2], [0, 0], "slot 2 is not live: its episode is over or it was never reset"),
    ([0, 1], [0], r"input 'actions' has shape \[1\], expected \[2\]"),
    ([0], [[0]], r"input 'actions' has shape \[1,1\], expected \[1\]"),
    ([[0]], [0], r"input 'slots' has shape \[1,1\], expected \[K\]"),
    (0, [0], r"input 'slots' has shape \[\], expected \[K\]"),
]


@pytest.mark.parametrize(("slots", "actions", "message"), STEP)
def test_bad_steps(pool, slots, actions, message):
    with pytest.raises(ERRORS, match=message):
        load_ops().env_step(pool, np.array(slots, np.int64), np.array(actions, np.int32))


def test_actions_of_a_wrong_dtype(pool):
    for actions in (np.zeros(1, np.float32), np.zeros((1, 3), np.float32)):
        with pytest.raises(ERRORS, match="'actions' .*float, .*int32"):
            load_ops().env_step(pool, int64(0), actions)
    for actions in (int64(0), np.zeros(1, np.float64), np.array(["up"])):
        with pytest.raises(Exception, match="allowed values: int32, float"):
            load_ops().env_step(pool, int64(0), actions)
    with pytest.raises(ERRORS, match="int64 tensor .*int32 tensor"):
        load_ops().env_step(pool, tf.constant([0]), int32(0))


COPIES = [  # op that copies data out of a slot, and the missing state in its error
    ("env_observation", {"dtype": tf.uint8, "shape": [84, 84, 4]}, "observation"),
    ("env_behavior", {"dtype": tf.uint8, "shape": [128]}, "behavior"),
    ("env_render", {}, "screen"),
]
COPIED_SLOTS = [
    ([SLOTS], r"slot 3 is out of range \[0, 3\)"),
    ([0, -1], r"slot -1 is out of range \[0, 3\)"),
    ([1, 1], "slot 1 occurs more than once in one call"),
    ([[0, 1]], r"input 'slots' has shape \[1,2\], expected \[K\]"),
    (1, r"input 'slots' has shape \[\], expected \[K\]"),
]


@pytest.mark.parametrize(("op", "attributes", "_"), COPIES)
@pytest.mark.parametrize(("slots", "message"), COPIED_SLOTS)
def test_bad_slots_to_copy_from(pool, op, attributes, _, slots, message):
    with pytest.raises(ERRORS, match=message):
        getattr(load_ops(), op)(pool, np.array(slots, np.int64), **attributes)


ATTRIBUTES = [
    ("env_observation", tf.float32, [84, 84, 4], "attr 'dtype' is float, expected uint8"),
    ("env_observation", tf.float64, [84, 84, 4], "attr 'dtype' is double, expected uint8"),
    ("env_observation", tf.uint8, [84, 84, 3], r"attr 'shape' is \[84,84,3\], expected \[84,84,4\]"),
    ("env_observation", tf.uint8, [28224], r"attr 'shape' is \[28224\], expected \[84,84,4\]"),
    ("env_observation", tf.uint8, [], r"attr 'shape' is \[\], expected \[84,84,4\]"),
    ("env_behavior", tf.float32, [128], "attr 'dtype' is float, expected uint8"),
    ("env_behavior", tf.float64, [128], "attr 'dtype' is double, expected uint8"),
    ("env_behavior", tf.uint8, [127], r"attr 'shape' is \[127\], expected \[128\]"),
    ("env_behavior", tf.uint8, [1, 128], r"attr 'shape' is \[1,128\], expected \[128\]"),
]


@pytest.mark.parametrize(("op", "dtype", "shape", "message"), ATTRIBUTES)
def test_attributes_that_disagree(pool, op, dtype, shape, message):
    with pytest.raises(ERRORS, match=message):
        getattr(load_ops(), op)(pool, int64(0), dtype=dtype, shape=shape)


def test_screens_and_behaviors_are_those_of_the_slots(pool):
    # The ops agree with the C interface, which other tests compare with ale-py.
    recipe = registry.resolve("freeway")
    other = EnvPool(recipe, 2)
    other.reset([0, 1], [1, 2], [0, 0])
    for _ in range(2):
        other.step([0], [1])
    screens = load_ops().env_render(pool, int64(1, 0))
    assert screens.dtype == tf.uint8 and screens.shape == (2, 210, 160, 3)
    assert np.array_equal(screens, other.render([1, 0]))
    behaviors = load_ops().env_behavior(pool, int64(1, 0), dtype=tf.uint8, shape=[128])
    assert np.array_equal(behaviors, other.behavior([1, 0]))
    assert not np.array_equal(behaviors[0], behaviors[1])


def test_the_specification(pool):
    spec = load_ops().env_pool_spec(pool)
    assert (spec.observation_dtype, spec.action_dtype, spec.behavior_dtype) == (b"uint8", b"int32", b"uint8")
    assert (spec.num_actions, spec.frame_skip, spec.slots) == (3, 4, SLOTS)
    assert spec.observation_shape.numpy().tolist() == [84, 84, 4]
    assert spec.behavior_shape.numpy().tolist() == [128]
    assert spec.render_shape.numpy().tolist() == [210, 160, 3]
    assert spec.action_low.shape == spec.action_high.shape == (0,)


def test_shapes_in_a_graph(pool):
    ops, shapes = load_ops(), {}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def look(slots):
        behaviors = ops.env_behavior(pool, slots, dtype=tf.uint8, shape=[128])
        screens = ops.env_render(pool, slots)
        shapes.update(behaviors=behaviors.shape.as_list(), screens=screens.shape.as_list())
        shapes["spec"] = [output.shape.rank for output in ops.env_pool_spec(pool)]
        return behaviors, screens

    behaviors, screens = look(int64(1))
    assert shapes == {
        "behaviors": [None, 128],
        "screens": [None, None, None, 3],
        "spec": [0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1],
    }
    assert behaviors.shape == (1, 128) and screens.shape == (1, 210, 160, 3)


def test_an_unreset_slot_can_neither_be_stepped_nor_copied_from():
    pool = make(slots=2)
    reset(pool, (0,))
    with pytest.raises(ERRORS, match="slot 1 is not live"):
        load_ops().env_step(pool, int64(0, 1), int32(0, 0))
    for op, attributes, what in COPIES:
        with pytest.raises(ERRORS, match=f"slot 1 has no {what}"):
            getattr(load_ops(), op)(pool, int64(0, 1), **attributes)
    reset(pool, (1,))  # the same seed, and no step of slot 0 slipped through
    assert np.array_equal(observe(pool, 0), observe(pool, 1))


def test_no_slots_is_a_call_like_any_other(pool):
    reset(pool, (), (), ())
    rewards, dones, _ = load_ops().env_step(pool, int64(), int32())
    assert rewards.shape == dones.shape == (0,)
    assert observe(pool).shape == (0, 84, 84, 4)
    assert load_ops().env_behavior(pool, int64(), dtype=tf.uint8, shape=[128]).shape == (0, 128)
    assert load_ops().env_render(pool, int64()).shape == (0, 210, 160, 3)


def test_handles_of_another_kind(pool):
    ops = load_ops()
    population = ops.population_make(networks=["input uint8 4; dense 2 1.0"], rows=1)
    queue = ops.episode_queue_make(lanes=1, slots_per_lane=1, first_row=0)
    variable = tf.Variable(1.0)
    for handle in (population, queue, variable.handle):
        for call in (
            lambda handle: reset(handle),
            lambda handle: ops.env_step(handle, int64(0), int32(0)),
            lambda handle: observe(handle, 0),
            lambda handle: ops.env_behavior(handle, int64(0), dtype=tf.uint8, shape=[128]),
            lambda handle: ops.env_render(handle, int64(0)),
            lambda handle: ops.env_pool_spec(handle),
            lambda handle: ops.env_actions(handle, np.zeros((1, 3), np.float32), T=tf.int32),
            lambda handle: ops.env_normalized_observation(handle, int64(0), shape=[84, 84, 4]),
            lambda handle: ops.env_set_normalizer(handle, 0, [0.0], [1.0]),
            lambda handle: ops.env_drop_normalizers(handle, int64(0)),
            lambda handle: ops.env_record_behaviors(handle, 0, 1),
        ):
            with pytest.raises(ERRORS, match="'handle' .*env pool"):
                call(handle)
    with pytest.raises(ERRORS, match="'handle' .*population"):
        ops.population_dimensions(pool)
    with pytest.raises(ERRORS, match="'handle' .*episode queue"):
        ops.episode_queue_close(pool)
    put = 0, int64(), np.zeros(0), np.zeros(0, bool)
    with pytest.raises(ERRORS, match="'env_pool' .*env pool"):
        ops.episode_queue_put(queue, population, *put)
    with pytest.raises(ERRORS, match="resource tensor .*float tensor"):
        reset(tf.constant(1.0))


@pytest.mark.parametrize("handles", [0, 2])
def test_no_handle_or_several(pool, handles):
    @tf.function
    def spec(count):
        return load_ops().env_pool_spec(tf.gather(tf.stack([pool, pool]), tf.range(count)))

    with pytest.raises(ERRORS, match=rf"'handle' .*\[{handles}\], .*\[\]"):
        spec(tf.constant(handles))


def test_wrong_ranks_are_found_when_a_graph_is_built(pool):
    ops = load_ops()
    for call in (
        lambda: ops.env_step(pool, tf.constant(0, tf.int64), int32(0)),
        lambda: ops.env_reset(pool, int64(0), tf.constant(0, tf.int64), int64(0), int64()),
        lambda: ops.env_reset(pool, int64(0), int64(0), int64(0), tf.constant(0, tf.int64)),
        lambda: ops.env_actions(pool, tf.zeros([3]), T=tf.int32),
        lambda: ops.env_normalized_observation(pool, tf.zeros([1, 1], tf.int64), shape=[84, 84, 4]),
        lambda: ops.env_set_normalizer(pool, 0, tf.zeros([1, 1], tf.float64), tf.zeros([1], tf.float64)),
        lambda: ops.env_drop_normalizers(pool, tf.constant(0, tf.int64)),
        lambda: ops.env_observation(pool, tf.zeros([1, 1], tf.int64), dtype=tf.uint8, shape=[84, 84, 4]),
        lambda: ops.env_behavior(pool, tf.zeros([1, 1], tf.int64), dtype=tf.uint8, shape=[128]),
        lambda: ops.env_render(pool, tf.constant(0, tf.int64)),
    ):
        with pytest.raises(ValueError, match="must be rank [12]"):
            tf.function(call).get_concrete_function()


def test_bad_pools(tmp_path):
    rom = registry.resolve("freeway").options[0].removeprefix("rom=")
    with open(rom, "rb") as file:
        (tmp_path / "truncated.bin").write_bytes(file.read()[:-1])
    (tmp_path / "freeway.bin").write_text("not a game\n")
    (tmp_path / "empty.bin").write_bytes(b"")
    unknown = "is not the ROM of a single-player game that ALE 0.12.1 recognizes by its MD5 sum"
    cases = [
        ({"family": "atary"}, "environment family 'atary' is unknown, expected one of: atari"),
        ({"family": ""}, "environment family '' is unknown"),
        ({"slots": 0}, "number of slots is 0, expected 1 to 65536"),
        ({"slots": -5}, "number of slots is -5, expected 1 to 65536"),
        ({"options": []}, "atari needs the option rom=FILE"),
        ({"options": ["rom="]}, "atari needs the option rom=FILE"),
        ({"options": ["rom"]}, "option 'rom' is not of the form key=value"),
        ({"options": [f"rom={rom}", "sticky=0.25"]}, "atari has no option 'sticky', expected one of: rom, protocol, "),
        ({"options": [f"rom={rom}", "frame_skip=0"]}, "option frame_skip is '0', expected an integer in [1, 1000]"),
        (
            {"options": [f"rom={rom}", "mode=8"]},
            "mode is 8, which freeway does not support; expected one of: 0, 1, 2, 3,",
        ),
        ({"options": [f"rom={rom}", "mode=1", "mode=1"]}, "option 'mode' is given twice"),
        ({"options": ["rom=/nowhere/pong.bin"]}, "ROM file '/nowhere/pong.bin' does not exist"),
        ({"options": [f"rom={tmp_path}"]}, f"ROM file '{tmp_path}' does not exist"),
        *(({"options": [f"rom={file}"]}, f"file '{file}' {unknown}") for file in sorted(tmp_path.iterdir())),
        ({"options": [f"rom={rom.replace('freeway', 'combat')}"]}, f"combat.bin' {unknown}"),
    ]
    for given, message in cases:
        with pytest.raises(ERRORS) as caught:
            make(**given)
        assert message in str(caught.value)
        if given.get("slots", 1) > 0 and given.get("family", "atari") == "atari":
            with pytest.raises(NativeError) as caught:  # same message from the C interface
                EnvPool(EnvSpec("freeway", "atari", tuple(given["options"])), 1)
            assert message in str(caught.value)


def test_long_options_that_begin_and_end_alike_are_told_apart():
    # With op attributes they were not: TensorFlow 2.21 compares 20 characters of a long string in a list.
    for word in ("one", "two"):
        rom = f"/{'long' * 20}/{word}/montezuma_revenge.bin"
        with pytest.raises(ERRORS, match=f"ROM file '{rom}'"):
            make(options=[f"rom={rom}"])


def test_threads_share_a_pool():
    # Concurrent calls may use different slots; for the same slot, the second call raises an error instead of crashing.
    ops, pool = load_ops(), make(slots=4)
    reset(pool, range(4), [5] * 4, [0] * 4)
    failures = []

    def step(own):
        for _ in range(100):
            ops.env_step(pool, int64(own), int32(1))
            try:
                ops.env_step(pool, int64(3), int32(1))
            except ERRORS as error:
                failures.append(str(error))

    threads = [threading.Thread(target=step, args=(slot,)) for slot in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("slot 3 is in use by another call" in failure for failure in failures)
    reset(pool, (3,), (5,), (0,))
    for _ in range(100):
        ops.env_step(pool, int64(3), int32(1))
    observations = observe(pool, 0, 1, 2, 3)
    assert all(np.array_equal(observations[slot], observations[3]) for slot in range(3))
