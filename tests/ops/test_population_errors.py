"""Invalid input to the population ops: a Python exception with the value and the valid range, and unchanged rows."""

import resource

import numpy as np
import pytest
import tensorflow as tf

from neuroevo.core.errors import NativeError
from neuroevo.native.population import Population
from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.population_reference import OpPopulation, bits

NETWORK = "input float32 3; dense 5 1.0; bias; tanh; dense 2 0.1; bias"  # D = 32
SMALLER = "input float32 3; dense 2 1.0"  # D = 6
NAN, INF = float("nan"), float("inf")
ERRORS = (tf.errors.InvalidArgumentError, tf.errors.NotFoundError)


@pytest.fixture
def population():
    """A population with rows 0 and 1 filled, rows 2 and 3 empty, which must be unchanged after the test."""
    made = OpPopulation([NETWORK, SMALLER], 4)
    made.init([0, 1], [0, 1], [5, 6])
    before = made.read([0, 1])
    yield made
    assert np.array_equal(bits(made.read([0, 1])), bits(before))
    for row in (2, 3):
        with pytest.raises(ERRORS, match=f"row {row} .*Init, Assign or Perturb"):
            made.read([row])


def zeros(*shape):
    return np.zeros(shape, np.float32)


CALLS = [
    ("init", ([4], [0], [0]), r"row 4 is out of range \[0, 4\)"),
    ("init", ([2, -1], [0, 0], [0, 0]), r"row -1 is out of range \[0, 4\)"),
    ("init", ([2, 3, 2], [0, 0, 0], [0, 1, 2]), "row 2 is given twice, expected different rows"),
    ("init", ([2], [2], [0]), r"network 2 is out of range \[0, 2\)"),
    ("init", ([2], [-1], [0]), r"network -1 is out of range \[0, 2\)"),
    ("init", ([2, 3], [0], [0, 0]), r"input 'networks' has shape \[1\], expected \[2\]"),
    ("init", ([2], [0], [0, 1]), r"input 'seeds' has shape \[2\], expected \[1\]"),
    ("init", ([[2]], [0], [0]), r"input 'rows' has shape \[1,1\], expected \[K\]"),
    ("init", (2, [0], [0]), r"input 'rows' has shape \[\], expected \[K\]"),
    ("assign", ([4], [0], zeros(1, 32)), r"row 4 is out of range \[0, 4\)"),
    ("assign", ([0, 0], [0, 0], zeros(2, 32)), "row 0 is given twice, expected different rows"),
    ("assign", ([2], [7], zeros(1, 32)), r"network 7 is out of range \[0, 2\)"),
    ("assign", ([0], [0], zeros(1, 31)), r"input 'thetas' has shape \[1,31\], expected \[1,32\]"),
    ("assign", ([0], [1], zeros(1, 6)), r"input 'thetas' has shape \[1,6\], expected \[1,32\]"),
    ("assign", ([0], [0], zeros(2, 32)), r"input 'thetas' has shape \[2,32\], expected \[1,32\]"),
    ("assign", ([0], [0], zeros(32)), r"input 'thetas' has shape \[32\], expected \[1,32\]"),
    ("read", ([0, 4],), r"row 4 is out of range \[0, 4\)"),
    ("read", ([0, 2],), "row 2 has no network yet"),
    ("perturb", ([4], [0], [0], [1]), r"dst row 4 is out of range \[0, 4\)"),
    ("perturb", ([2], [-3], [0], [1]), r"src row -3 is out of range \[0, 4\)"),
    ("perturb", ([2], [3], [0], [1]), "row 3 has no network yet"),
    ("perturb", ([2, 2], [2, 0], [0, 0], [1, 1]), "row 2 has no network yet"),
    ("perturb", ([0, 2], [0, 0], [0, 0], [1, NAN]), "scale 1 is nan, expected a finite number"),
    ("perturb", ([0], [0], [0], [-INF]), "scale 0 is -inf, expected a finite number"),
    ("perturb", ([0], [0, 1], [0], [1]), r"input 'src' has shape \[2\], expected \[1\]"),
    ("perturb", ([0], [0], [], [1]), r"input 'seeds' has shape \[0\], expected \[1\]"),
    ("perturb", ([0], [0], [0], [1, 1]), r"input 'scales' has shape \[2\], expected \[1\]"),
    ("forward", ([0, 4], zeros(2, 3)), r"row 4 is out of range \[0, 4\)"),
    ("forward", ([-1], zeros(1, 3)), r"row -1 is out of range \[0, 4\)"),
    ("forward", ([0, 3], zeros(2, 3)), "row 3 has no network yet"),
    ("forward", ([0], zeros(2, 3)), r"input 'observations' has shape \[2,3\], expected \[1,3\]"),
    ("forward", ([0], zeros(1, 4)), r"input 'observations' has shape \[1,4\], expected \[1,3\]"),
    ("forward", ([0], zeros(1, 3, 1)), r"input 'observations' has shape \[1,3,1\], expected \[1,3\]"),
    ("forward", ([0], zeros(3)), r"input 'observations' has shape \[3\], expected \[1,3\]"),
    ("forward", ([0], zeros(1, 3).astype(np.uint8)), "input 'observations' has dtype uint8, expected float"),
]


@pytest.mark.parametrize(("call", "arguments", "message"), CALLS)
def test_bad_calls(population, call, arguments, message):
    with pytest.raises(ERRORS, match=message):
        getattr(population, call)(*arguments)


def test_wrong_dtypes(population):
    ops, rows = load_ops(), np.zeros(1, np.int64)
    for call in (
        lambda: population.forward([0], np.zeros((1, 3), np.float64)),
        lambda: population.forward([0], np.zeros((1, 3), np.int32)),
        lambda: population.forward([0], np.array([["a", "b", "c"]])),
    ):
        with pytest.raises(Exception, match="allowed values: uint8, float"):
            call()
    with pytest.raises(ERRORS, match="float tensor .*double tensor"):
        population.assign([0], [0], tf.zeros((1, 32), tf.float64))
    with pytest.raises(ERRORS, match="int64 tensor .*int32 tensor"):
        ops.population_read(population.handle, tf.constant([0]))
    with pytest.raises(ERRORS, match="int32 tensor .*int64 tensor"):
        ops.population_init(population.handle, rows, tf.constant(rows), rows)
    with pytest.raises(Exception, match="allowed values: float"):
        ops.population_make(networks=[NETWORK], rows=1, dtype=tf.float64)


def test_wrong_ranks_are_found_when_a_graph_is_built(population):
    ops, handle, rows = load_ops(), population.handle, np.zeros(2, np.int64)
    for call, message in (
        (lambda: ops.population_forward(handle, rows, tf.zeros([3])), "must be at least rank 2"),
        (lambda: ops.population_forward(handle, rows, tf.zeros([3, 3])), "Dimensions must be equal, but are 2 and 3"),
        (lambda: ops.population_assign(handle, rows, np.zeros(2, np.int32), tf.zeros([2])), "must be rank 2"),
        (lambda: ops.population_perturb(handle, rows, rows, tf.zeros([], tf.int64), [1.0], rows), "must be rank 1"),
        (lambda: ops.population_make(networks=NETWORK, rows=1), "must be rank 1"),
    ):
        with pytest.raises(ValueError, match=message):
            tf.function(call).get_concrete_function()


def test_no_rows_is_a_call_like_any_other(population):
    population.init([], [], [])
    population.assign([], [], zeros(0, 32))
    population.perturb([], [], [], [])
    assert population.read([]).shape == (0, 32)
    assert population.forward([], zeros(0, 3)).shape == (0, 2)


NETWORKS = [
    ([], "a population needs at least 1 network, found 0"),
    ([NETWORK, "input float32 4; dense 2 1.0"], "network 1 has input float32 4, but network 0 has input float32 3"),
    ([NETWORK, "input uint8 3; dense 2 1.0"], "network 1 has input uint8 3, but network 0 has input float32 3"),
    ([NETWORK, "input float32 1 3; dense 2 1.0"], "network 1 has input float32 1 3, but network 0 has input float32 3"),
    ([NETWORK, SMALLER, "input float32 3; dense 4 1.0"], "network 2 has 4 outputs, but network 0 has 2"),
    ([""], "network layer 0 '': is empty, expected input"),
    (["dense 3 1.0"], "network layer 0 'dense 3 1.0': expected input uint8|float32 DIM... as the first layer"),
    (["input float32"], "has 2 words, expected at least 3: input uint8|float32 DIM..."),
    (["input float64 3; dense 2 1.0"], "the input's type is 'float64', expected uint8 or float32"),
    (["input uint8 0; dense 2 1.0"], "a dimension is '0', expected an integer in [1, 268435456]"),
    (["input uint8 3 -4; dense 2 1.0"], "a dimension is '-4', expected an integer in [1, 268435456]"),
    (["input uint8 99999999999999999999; bias"], "a dimension is '99999999999999999999', expected an integer in"),
    (["input uint8 65536 65536; bias"], "is too large: an observation may have 268435456 values"),
    (
        ["input float32 3"],
        "network 'input float32 3' has no weights, expected a conv, dense, bias, lstm or graph layer",
    ),
    (["input float32 3; relu"], "has no weights, expected a conv, dense, bias, lstm or graph layer"),
    (["input float32 3; ; dense 2 1.0"], "network layer 1 '': is empty"),
    (["input float32 3; densely 2 1.0"], "network layer 1 'densely 2 1.0': 'densely' is not a layer, expected conv"),
    (["input float32 3; dense 2"], "has 2 words, expected 3: dense UNITS STD"),
    (["input float32 3; dense 2.5 1.0"], "the number of units is '2.5', expected an integer in [1, 268435456]"),
    (["input float32 3; dense 2 -1"], "the initial standard deviation is '-1', expected a number in [0, 1e6]"),
    (["input float32 3; dense 2 nan"], "the initial standard deviation is 'nan', expected a number in [0, 1e6]"),
    (["input float32 3; dense 2 1.0; bias 2"], "network layer 2 'bias 2': has 2 words, expected 1: bias"),
    (["input float32 3; dense 2 1.0; relu 6"], "has 2 words, expected 1: relu"),
    (["input float32 3; input float32 3"], "input may only be the first layer"),
    (["input float32 3; conv 1 1 1 1 same 1.0"], "needs an input of height, width and channels, found a flat vector"),
    (["input float32 4 4 1; dense 3 1; conv 1 1 1 1 same 1"], "needs an input of height, width and channels"),
    (["input float32 4 4 1; conv 1 1 1 1 full 1.0"], "padding is 'full', expected same or valid"),
    (["input float32 4 4 1; conv 1 5 1 1 valid 1.0"], "a valid kernel of 5x1 does not fit its input of 4x4"),
    (["input float32 4 4 1; conv 1 1 1 0 same 1.0"], "the stride is '0', expected an integer in [1, 268435456]"),
    (["input float32 4 4 1; conv 0 1 1 1 same 1.0"], "the number of filters is '0', expected an integer in"),
    (["input float32 4 4 1; conv 268435456 1 1 1 same 1"], "is too large: an activation may have 268435456 values"),
    (["input float32 4 4 1; conv 1 99999 99999 1 same 1"], "is too large: an activation may have 268435456 values"),
    (["input float32 4096; dense 2097152 1.0"], "is too large: a network may have 4294967296 weights"),
]


@pytest.mark.parametrize(("networks", "message"), NETWORKS, ids=[message[:40] for _, message in NETWORKS])
def test_bad_networks(networks, message):
    with pytest.raises(ERRORS) as caught:
        OpPopulation(networks, 1)
    assert message in str(caught.value)
    with pytest.raises(NativeError) as caught:  # same message from the C interface
        Population(networks, 1)
    assert message in str(caught.value)


def test_bad_sizes_and_backends():
    for arguments, message in (
        ({"rows": 0}, "rows is 0, expected 1 to 16777216"),
        ({"rows": -1}, "rows is -1, expected 1 to 16777216"),
        ({"rows": 2**24 + 1}, "rows is 16777217, expected 1 to 16777216"),
        ({"rows": 2**62}, "rows is 4611686018427387904, expected 1 to 16777216"),
        ({"backend": "gpu"}, "backend is 'gpu', expected 'cpu' or 'reference'"),
        ({"backend": ""}, "backend is '', expected 'cpu' or 'reference'"),
        ({"networks": ["input uint8 9999; dense 99999 1"], "rows": 2**20}, "cannot map .* GiB for 1048576 rows of"),
    ):
        with pytest.raises(ERRORS, match=message):
            OpPopulation(**{"networks": [NETWORK], "rows": 1, **arguments})
    with pytest.raises(ERRORS, match=r"1048576 rows of networks need 44\d\d.* GB of memory, but only .* GB are free"):
        OpPopulation(["input uint8 1024; dense 1024 1.0"], 2**20)
    # Rows that are never written take no memory: this is 1 GiB.
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert OpPopulation(["input uint8 1024; dense 1024 1.0"], 2**8).dimensions == [2**20]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 2**17  # KiB


def test_a_perturbed_row_takes_over_the_network_of_its_source():
    population = OpPopulation([NETWORK, SMALLER], 3)
    population.init([0, 1], [0, 1], [5, 6])
    population.perturb([2, 0], [1, 2], [7, 8], [1.0, 1.0])
    assert not population.read([0, 2])[:, 6:].any() and population.read([0, 2])[:, :6].all()
    with pytest.raises(ERRORS, match="row 0 .*twice"):
        population.init([0, 0], [0, 1], [1, 2])
    assert not population.read([0])[:, 6:].any()
