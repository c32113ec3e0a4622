"""The population through its TensorFlow ops: sizes, initial weights, noise, and the forward pass, against NumPy and
TensorFlow's layers, and bit-identical on repetition."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.networks.architectures import NETWORKS, input_line, mlp, to_text
from tests.support.population_reference import OpPopulation, ReferenceNetwork, bits, noise, philox

SCREEN, FLAT = input_line("uint8", (84, 84, 4)), input_line("float32", (13,))
TINY = "input float32 3; dense 5 1.0; bias; tanh; dense 2 0.1; bias"  # D = 32
TINY_TOO = "input float32 3; dense 2 1.0"  # D = 6
SEEDS = [0, 1, 2**63 - 1, -1, 7_046_029_254_386_353_087]
SHAPES = {  # of the layers' weights at 18 outputs, counted by hand
    "large_model": [(8, 8, 4, 32), 32, (4, 4, 32, 64), 64, (3, 3, 64, 64), 64, (11 * 11 * 64, 512), 512, (512, 18), 18],
    "model": [(8, 8, 4, 16), 16, (4, 4, 16, 32), 32, (11 * 11 * 32, 256), 256, (256, 18), 18],
    "virtual_bn": [(8, 8, 4, 16), 16, (4, 4, 16, 32), 32, (11 * 11 * 32, 256), 256, (256, 18), 18],
    "nature_dqn": [(8, 8, 4, 32), 32, (4, 4, 32, 64), 64, (3, 3, 64, 64), 64, (7 * 7 * 64, 512), 512, (512, 18), 18],
}


def thetas_for(network, count, rng):
    """Return initial weights with nonzero biases, float32 [count, D], so that a wrong position is detected."""
    thetas = np.empty((count, network.dimension), np.float32)
    for part in network.parts:
        size = (count, part.end - part.begin)
        thetas[:, part.begin : part.end] = rng.standard_normal(size) * (part.scale or 0.3)
    return thetas


def observations_for(network, count, rng):
    if network.dtype == "uint8":
        return rng.integers(256, size=(count, *network.input_shape), dtype=np.uint8)
    return rng.standard_normal((count, *network.input_shape), np.float32)


@pytest.mark.parametrize("name", SHAPES)
def test_dimensions(name):
    sizes = [int(np.prod(shape)) for shape in SHAPES[name]]
    assert OpPopulation([to_text(NETWORKS[name](SCREEN, 18))], 1).dimensions == [sum(sizes)]
    expected = {"large_model": 4_052_658, "model": 1_008_450, "virtual_bn": 1_008_450, "nature_dqn": 1_693_362}
    assert sum(sizes) == expected[name]
    parts = ReferenceNetwork(NETWORKS[name](SCREEN, 18)).parts
    assert [part.shape for part in parts] == [shape if isinstance(shape, tuple) else (shape,) for shape in SHAPES[name]]


def test_long_networks_that_begin_and_end_alike_are_told_apart():
    # With op attributes they were not: TensorFlow 2.21 compares 20 characters of a long string in a list.
    dimensions = [OpPopulation([TINY.replace("tanh", "; ".join(["tanh"] * 20 + ["bias"] * n))], 1) for n in range(3)]
    assert [population.dimensions for population in dimensions] == [[32], [37], [42]]


def test_known_answers_of_philox():
    # From the authors' implementation (Random123, kat_vectors).
    counters = np.array([[0] * 4, [2**32 - 1] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]], np.uint64)
    keys = [(0, 0), (2**32 - 1, 2**32 - 1), (0xA4093822, 0x299F31D0)]
    words = [philox(counter[None], key)[0].tolist() for counter, key in zip(counters, keys, strict=True)]
    assert words == [
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_is_philox_and_box_muller(seed):
    size = 200_003  # several chunks, and not a multiple of any vector width
    population = OpPopulation([f"input float32 1; dense {size} 1.0"], 2)
    population.assign([0], [0], np.zeros((1, size), np.float32))
    population.perturb([1], [0], [seed], [1.0])
    made, expected = population.read([1])[0], noise(seed, size)
    ulp = np.spacing(np.abs(expected).astype(np.float32))
    assert (np.abs(made - expected) / ulp).max() < 6
    assert abs(made.mean()) < 5 / np.sqrt(size) and abs(made.std() - 1) < 5 / np.sqrt(2 * size)
    # Perturbing adds it with one rounding; float64 holds the exact product, and here rounds the sum identically.
    for scale in (0.002, -1e-3, 3.0, 0.0):
        population.assign([0], [0], made[None, ::-1].copy())
        population.perturb([1], [0], [seed], [scale])
        sums = made[::-1].astype(np.float64) + np.float64(np.float32(scale)) * made
        assert np.array_equal(population.read([1])[0], sums.astype(np.float32))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_spread_multiplies_the_scale_weight_by_weight(backend):
    """In NumPy: the product rounded to float32, then one rounding, by float64 that holds the exact product."""
    size, rng = 70_003, np.random.default_rng(5)
    population = OpPopulation([f"input float32 1; dense {size} 1.0"], 4, backend)
    spread = (rng.standard_normal(size) * 2.0 ** rng.integers(-9, 5, size)).astype(np.float32)
    spread[::11], start = 0, rng.standard_normal(size).astype(np.float32)
    population.assign([0, 1, 2], [0, 0, 0], np.stack([np.zeros(size, np.float32), start, spread]))
    population.perturb([3], [0], [9], [1.0])
    made = population.read([3])[0].astype(np.float64)
    scale = np.float32(0.3)
    population.perturb([3, 3], [1, 3], [9, 9], [scale, scale], [2, -1])
    once = (start + (scale * spread).astype(np.float64) * made).astype(np.float32)
    assert np.array_equal(population.read([3])[0], (once + np.float64(scale) * made).astype(np.float32))
    assert np.array_equal(population.read([2])[0], spread)


@pytest.mark.parametrize("name", SHAPES)
def test_initial_weights(name):
    network = ReferenceNetwork(NETWORKS[name](SCREEN, 18))
    population = OpPopulation([to_text(NETWORKS[name](SCREEN, 18))], 2)
    population.init([1, 0], [0, 0], [3, 4])
    four, three = population.read([0, 1])
    expected = noise(3, network.dimension)
    for part in network.parts:
        weights = three[part.begin : part.end]
        if part.scale == 0:
            assert not bits(weights).any()
            continue
        std = 0.1 if part is network.parts[-2] and name != "virtual_bn" else 1.0
        fan_in = int(np.prod(part.shape[:-1]))
        assert part.scale == pytest.approx(std / np.sqrt(fan_in))
        size = weights.size
        assert abs(weights.mean()) < 5 * part.scale / np.sqrt(size)
        assert abs(weights.std() / part.scale - 1) < 5 / np.sqrt(2 * size)
        assert abs(np.corrcoef(weights, four[part.begin : part.end])[0, 1]) < 5 / np.sqrt(size)
        np.testing.assert_allclose(weights, expected[part.begin : part.end] * part.scale, rtol=2e-6, atol=0)


CASES = [
    *((to_text(NETWORKS[name](SCREEN, 18)), 3) for name in NETWORKS if name != "virtual_bn"),  # test_virtual_bn.py
    *((to_text(NETWORKS[name](SCREEN, 3)), 2) for name in ("model", "nature_dqn")),
    (to_text(mlp(FLAT, 1, hidden=())), 5),
    (to_text(mlp(FLAT, 7, hidden=(1,))), 5),
    (to_text(mlp(FLAT, 2, hidden=(3, 17, 33), activation="relu")), 40),
    (to_text(mlp(input_line("uint8", (3, 5)), 4, hidden=(64, 5))), 9),
    ("input float32 9 7 3; conv 5 3 2 2 same 1.0; bias; tanh; conv 7 2 4 1 valid 1.0; relu; dense 3 1.0", 6),
    ("input uint8 5 5 1; bias; relu; conv 1 5 5 7 same 1.0; tanh", 4),
    ("input uint8 9 7 3; max_pool 3 2 2 same; conv 20 2 2 1 same 1.0; bias; gelu; avg_pool 2 3 1 same; dense 3 1.0", 5),
    ("input float32 6 6 5; avg_pool 2 2 2 valid; silu; layer_norm; max_pool 1 3 1 same; leaky_relu 0.2; bias", 5),
    ("input float32 21; dense 19 1.0; bias; layer_norm; bias; leaky_relu 0.01; dense 33 1.0; silu; dense 4 1.0", 9),
]


@pytest.mark.parametrize(("text", "count"), CASES, ids=[text.split(";", 2)[1].strip() for text, _ in CASES])
def test_forward_equals_tensorflow_and_the_reference_backend(text, count, seed=2):
    rng = np.random.default_rng(seed)
    network = ReferenceNetwork(text.split("; "))
    thetas, observations = thetas_for(network, 2, rng), observations_for(network, count, rng)
    rows = rng.integers(2, size=count)
    outputs = {}
    for backend in ("cpu", "reference"):
        population = OpPopulation([text], 2, backend)
        assert population.dimensions == [network.dimension]
        population.assign([0, 1], [0, 0], thetas)
        assert np.array_equal(bits(population.read([1, 0])), bits(thetas[::-1]))
        outputs[backend] = population.forward(rows, observations)
    assert np.array_equal(bits(outputs["cpu"]), bits(outputs["reference"]))
    for row in (0, 1):
        expected = network.forward(thetas[row], observations[rows == row])
        difference = np.abs(outputs["cpu"][rows == row] - expected)
        assert difference.max(initial=0) <= 1e-4 * np.abs(expected).max(initial=1e-6)


@st.composite
def layer_lists(draw):
    """Small networks of every kind of layer in any order."""
    dims = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    layers = [input_line(draw(st.sampled_from(["uint8", "float32"])), dims)]
    image = dims if len(dims) == 3 else None
    plain = ["bias", "relu", "tanh", "silu", "gelu", "leaky_relu 0.3"]
    kinds = draw(st.lists(st.sampled_from(["conv", "max_pool", "avg_pool", "dense", *plain]), max_size=7))
    if draw(st.booleans()):  # at most one: each amplifies rounding differences of equal values
        kinds.insert(draw(st.integers(0, len(kinds))), "layer_norm")
    for kind in kinds:
        if kind in ("conv", "max_pool", "avg_pool") and image is not None:
            same = draw(st.booleans())
            kernel = [draw(st.integers(1, 6 if same else side)) for side in image[:2]]
            filters, stride = draw(st.integers(1, 35)), draw(st.integers(1, 4))
            window = f"{kernel[0]} {kernel[1]} {stride} {'same' if same else 'valid'}"
            layers.append(f"conv {filters} {window} 1.0" if kind == "conv" else f"{kind} {window}")
            image = [-(-(side if same else side - k + 1) // stride) for side, k in zip(image, kernel, strict=False)]
        elif kind == "dense":
            layers.append(f"dense {draw(st.integers(1, 70))} {draw(st.sampled_from(['1.0', '0.1']))}")
            image = None
        elif kind not in ("conv", "max_pool", "avg_pool"):
            layers.append(kind)
    return [*layers, draw(st.sampled_from(["dense 3 1.0", "bias"]))]


@settings(max_examples=150)
@given(layer_lists(), st.integers(1, 20), st.integers(0, 2**32))
def test_any_layer_list_equals_tensorflow_and_the_reference_backend(layers, count, seed):
    test_forward_equals_tensorflow_and_the_reference_backend("; ".join(layers), count, seed)


@pytest.fixture(scope="module")
def mixed():
    """Two networks for the same screens in one population: rows 0 to 3 use the first, rows 4 to 7 the second."""
    texts = [to_text(NETWORKS[name](SCREEN, 6)) for name in ("model", "nature_dqn")]
    population = OpPopulation(texts, 10)
    population.init(range(8), [0] * 4 + [1] * 4, range(8))
    observations = np.random.default_rng(0).integers(256, size=(30, 84, 84, 4), dtype=np.uint8)
    single = {row: population.forward([row] * 30, observations) for row in range(8)}  # [30, 6]
    for row in single:
        one_by_one = [population.forward([row], observations[i : i + 1])[0] for i in range(5)]
        assert np.array_equal(bits(one_by_one), bits(single[row][:5]))
    return texts, population, observations, single


def test_two_networks_in_one_call_give_what_each_gives_alone(mixed):
    texts, population, observations, single = mixed
    both = population.forward([0, 4, 1, 5], observations[:4])
    for network, rows in ((0, [0, 1]), (1, [4, 5])):
        alone = OpPopulation([texts[network]], 2)
        alone.init([0, 1], [0, 0], rows)
        assert np.array_equal(bits(alone.forward([0, 1], observations[network:4:2])), bits(both[network::2]))


@settings(max_examples=25)
@given(rows=st.lists(st.integers(0, 7), max_size=30), seed=st.integers(0, 2**32))
def test_a_result_depends_on_its_row_and_observation_alone(mixed, rows, seed):
    _, population, observations, single = mixed
    which = np.random.default_rng(seed).integers(30, size=len(rows))
    outputs = population.forward(rows, observations[which])
    assert outputs.shape == (len(rows), 6)
    expected = np.array([single[row][i] for row, i in zip(rows, which, strict=True)], np.float32).reshape(-1, 6)
    assert np.array_equal(bits(outputs), bits(expected))


def test_poisoned_rows_never_show(mixed):
    _, population, observations, single = mixed
    poison = np.full((2, max(population.dimensions)), np.nan, np.float32)
    population.assign([8, 9], [0, 1], poison)
    assert np.isnan(population.forward([8, 9], observations[:2])).all()
    for rows in ([0, 3, 7], [7], [2, 5] * 7):
        expected = [single[row][i] for i, row in enumerate(rows)]
        assert np.array_equal(bits(population.forward(rows, observations[: len(rows)])), bits(np.array(expected)))


def test_calls_at_once_give_the_same(mixed):
    _, population, observations, single = mixed
    wrong = []

    def play(own):
        for i in range(10):
            population.perturb(
                [8 + own % 2] if own < 2 else [], [own] if own < 2 else [], [i] * (own < 2), [1.0] * (own < 2)
            )
            if not np.array_equal(bits(population.forward([own, own + 4], observations[:2])), bits(expected[own])):
                wrong.append((own, i))

    expected = [np.stack([single[own][0], single[own + 4][1]]) for own in range(4)]
    threads = [threading.Thread(target=play, args=(own,)) for own in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


entries = st.tuples(
    st.integers(0, 3), st.integers(0, 3), st.integers(0, 9), st.sampled_from([0.5, -2.0, 1e-3, 0.0]), st.booleans()
)


@settings(max_examples=60)
@given(st.lists(entries, max_size=12))
def test_a_list_of_perturbations_equals_its_steps_one_by_one(steps):
    """Population whose row 4 is a spread for the first network, row 5 for the second."""
    together, one_by_one, reference = (
        OpPopulation([TINY, TINY_TOO], 6, backend) for backend in ("cpu", "cpu", "reference")
    )
    network = [0, 1, 0, 1, 0, 1]
    for population in (together, one_by_one, reference):
        population.init(range(6), network, range(6))
    for i, (dst, src, seed, scale, spread) in enumerate(steps):
        network[dst] = network[src]
        steps[i] = dst, src, seed, scale, 4 + network[src] if spread else -1
    columns = [list(column) for column in zip(*steps, strict=True)] or [[]] * 5
    together.perturb(*columns)
    reference.perturb(*columns)
    for step in steps:
        one_by_one.perturb(*([each] for each in step))
    expected = bits(one_by_one.read(range(4)))  # zeros after the D of the smaller network
    assert np.array_equal(bits(together.read(range(4))), expected)
    assert np.array_equal(bits(reference.read(range(4))), expected)
    observations = np.ones((4, 3), np.float32)
    outputs = bits(one_by_one.forward(range(4), observations))
    assert np.array_equal(bits(together.forward(range(4), observations)), outputs)


def test_long_chains_across_chunks():
    # 2.3 chunks of work; a chain in place, a chain whose parent is overwritten afterwards, and one that reads both.
    size = 75_001
    population = OpPopulation([f"input float32 1; dense {size} 1.0"], 4)
    population.init([0], [0], [5])
    steps = [(1, 0, 1), (1, 1, 2), (2, 1, 3), (1, 1, 4), (0, 2, 5), (3, 0, 6), (3, 3, 7), (2, 2, 8)]
    population.perturb(*np.array([(dst, src, seed) for dst, src, seed in steps]).T, [0.25] * len(steps))
    made = population.read(range(4))
    alone = OpPopulation([f"input float32 1; dense {size} 1.0"], 4)
    alone.init([0], [0], [5])
    for dst, src, seed in steps:
        alone.perturb([dst], [src], [seed], [0.25])
    assert np.array_equal(bits(made), bits(alone.read(range(4))))
    chain = noise(5, size) + 0.25 * (noise(1, size) + noise(2, size) + noise(4, size))
    np.testing.assert_allclose(made[1], chain, atol=1e-5)
