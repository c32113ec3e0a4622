"""The population's ops on TensorFlow's GPU device: rows in TensorFlow's part of the card's memory, the forward pass on
its stream; every result has the bits of the CPU's. `make test-gpu-tf` runs this; without a GPU it is skipped."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome, grow
from neuroevo.native import library
from neuroevo.networks.architectures import NETWORKS, input_line, to_text
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.tensorflow.engine import tensorflow_engine
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.population_reference import OpPopulation, bits

GPU = "/gpu:0"
SCREEN = input_line("uint8", (84, 84, 4))
LARGE = to_text(NETWORKS["large_model"](SCREEN, 18))
SMALL = to_text(NETWORKS["model"](SCREEN, 18))
FLOATS = "input float32 9 7 3; conv 20 3 3 2 same 1.0; bias; tanh; dense 33 1.0; bias; relu; dense 4 0.1; bias"
FLOATS_TOO = "input float32 9 7 3; dense 5 1.0; tanh; dense 4 0.1"


pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    """Skips where there is no GPU. TensorFlow takes its memory as it is needed, since others want some too."""
    if not library.gpu().usable:
        pytest.skip(f"no GPU can be used: {library.gpu().why_not}")
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        pytest.skip("TensorFlow finds no GPU: is this a build for CPUs (pip install 'tensorflow[and-cuda]')?")
    for device in devices:
        tf.config.experimental.set_memory_growth(device, True)


class OnGpu:
    """A population whose ops are placed on the GPU."""

    def __init__(self, *arguments, **keywords):
        with tf.device(GPU):
            self._population = OpPopulation(*arguments, backend="cuda", **keywords)

    def __getattr__(self, name):
        found = getattr(self._population, name)

        def placed(*arguments):
            with tf.device(GPU):
                return found(*arguments)

        return placed if callable(found) and name != "handle" else found


def both(networks, rows, **keywords):
    """Populations on the GPU and on the CPU with equal rows; row r has network r % len(networks)."""
    made = OnGpu(networks, rows, **keywords), OpPopulation(networks, rows, **keywords)
    for population in made:
        population.init(range(rows), [row % len(networks) for row in range(rows)], range(1, rows + 1))
        population.perturb(range(rows), range(rows), range(rows), [0.05] * rows)
    return made


def observations_for(networks, count, seed=0):
    words = networks[0].split(";")[0].split()
    shape, rng = tuple(map(int, words[2:])), np.random.default_rng(seed)
    if words[1] == "uint8":
        return rng.integers(256, size=(count, *shape), dtype=np.uint8)
    return rng.standard_normal((count, *shape), np.float32)


def test_the_handle_and_the_outputs_are_where_they_belong():
    on_gpu, _ = both([FLOATS], 3)
    with tf.device(GPU):
        out = load_ops().population_forward(
            on_gpu.handle, tf.constant([0, 2], tf.int64), tf.identity(observations_for([FLOATS], 2))
        )
    assert "GPU:0" in out.backing_device


@pytest.mark.parametrize(
    ("networks", "dtype"),
    [([FLOATS, FLOATS_TOO], "float32"), ([LARGE, SMALL], "float32"), ([SMALL], "int8"), ([LARGE, SMALL], "int8")],
)
def test_forward_has_the_cpus_bits(networks, dtype):
    on_gpu, on_cpu = both(networks, 8, dtype=dtype, float_rows=8)
    for row in range(8):
        assert np.array_equal(bits(on_gpu.read([row])), bits(on_cpu.read([row])))
    for rows in ([3], [0, 1, 2, 3, 4, 5, 6, 7], [5] * 9, [2, 7, 2, 2, 0, 7, 1, 1]):
        seen = observations_for(networks, len(rows), len(rows))
        assert np.array_equal(bits(on_gpu.forward(rows, seen)), bits(on_cpu.forward(rows, seen)))
    assert on_gpu.forward([], observations_for(networks, 0)).shape == (0, on_cpu.forward([0], seen[:1]).shape[1])


def test_weights_written_here_are_read_there():
    on_gpu, on_cpu = both([FLOATS, FLOATS_TOO], 4)
    thetas = np.random.default_rng(3).standard_normal((2, max(on_gpu.dimensions)), np.float32)
    for population in (on_gpu, on_cpu):
        population.assign([3, 0], [0, 1], thetas)
        population.perturb([1, 1, 2], [3, 1, 1], [-1, 2**62, 5], [0.1, -0.2, 3.0])
    assert np.array_equal(bits(on_gpu.read(range(4))), bits(on_cpu.read(range(4))))


def test_rows_are_refilled_after_the_forward_passes_that_came_before():
    on_gpu, on_cpu = both([LARGE], 2)
    rows, seen = [0, 1] * 32, observations_for([LARGE], 64)
    with tf.device(GPU):
        images = tf.identity(seen)
        queued = [load_ops().population_forward(on_gpu.handle, rows, images) for _ in range(20)]
    on_gpu.perturb([0, 1], [1, 0], [8, 9], [1.0, 1.0])
    expected = bits(on_cpu.forward(rows, seen))
    assert all(np.array_equal(bits(out.numpy()), expected) for out in queued)
    on_cpu.perturb([0, 1], [1, 0], [8, 9], [1.0, 1.0])
    assert np.array_equal(bits(on_gpu.forward(rows, seen)), bits(on_cpu.forward(rows, seen)))


def test_rows_in_memory_that_was_just_freed_leave_what_is_still_queued_alone():
    made, seen = both([LARGE], 2), observations_for([LARGE], 64)
    expected = bits(made[1].forward([0, 1] * 32, seen))
    with tf.device(GPU):
        images = tf.identity(seen)
        queued = [load_ops().population_forward(made[0].handle, [0, 1] * 32, images) for _ in range(20)]
    del made  # its ops have returned
    late = OnGpu([LARGE], 2)
    late.init([0, 1], [0, 0], [3, 4])
    assert all(np.array_equal(bits(out.numpy()), expected) for out in queued)


def test_in_a_graph_the_argmax_stays_on_the_gpu():
    on_gpu, on_cpu = both([SMALL], 5)
    rows = tf.constant([4, 0, 3, 3, 1], tf.int64)
    seen = observations_for([SMALL], 5)

    @tf.function(input_signature=[tf.TensorSpec((None, 84, 84, 4), tf.uint8)])
    def actions(images):
        with tf.device(GPU):
            return tf.argmax(load_ops().population_forward(on_gpu.handle, rows, images), 1, tf.int32)

    expected = on_cpu.forward(rows.numpy(), seen).argmax(1)
    for _ in range(20):  # the workspaces of calls are reused
        assert np.array_equal(actions(seen).numpy(), expected)


def test_calls_of_several_threads_at_once():
    on_gpu, on_cpu = both([SMALL], 6)
    wrong = []

    def lane(number):
        for step in range(20):
            rows = [(number + i) % 6 for i in range(step % 5 + 1)]
            seen = observations_for([SMALL], len(rows), step)
            if not np.array_equal(bits(on_gpu.forward(rows, seen)), bits(on_cpu.forward(rows, seen))):
                wrong.append((number, step))

    threads = [threading.Thread(target=lane, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_name_the_value():
    on_gpu, _ = both([SMALL], 2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="row 2 "):
        on_gpu.forward([2], observations_for([SMALL], 1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="observations"):
        on_gpu.forward([1], observations_for([FLOATS], 1))


def play(dtype, backend, device):
    """Returns and steps of 24 episodes of 8 genomes, half of them offspring of one."""
    parent = Genome(5).child(6, 0.02).child(7, 0.02)
    genomes = [grow(parent if seed % 2 else Genome(seed), [(seed, 0.05)] * (seed % 3)) for seed in range(8)]
    episodes = [Episode(genomes[each % 8], 100 + each, 50 + each) for each in range(24)]
    network, engine = Network("large_model", dtype=dtype), tensorflow_engine(2, device)
    with LocalEvaluator("frostbite", network, lanes=2, slots=4, parent_rows=2, backend=backend, engine=engine) as own:
        outcomes = own.evaluate(episodes)
    return list(zip(outcomes.returns.tolist(), outcomes.steps.tolist(), strict=True))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_pipeline_plays_the_cpus_episodes(dtype):
    expected = play(dtype, "cpu", "/cpu:0")
    assert len(expected) == 24
    assert play(dtype, "cuda", GPU) == expected  # observations and outputs on TensorFlow's GPU
    assert play(dtype, "cuda", "/cpu:0") == expected  # on its CPU: the backend copies them itself
