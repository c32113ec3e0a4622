"""One checkpoint file: every state comes back, and nothing that was not written so is taken for one."""

import hashlib
import json
import pickle
from dataclasses import dataclass, is_dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from experiments.examples.ask_tell import CMAES
from neuroevo.algorithms.base import State
from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.schema import Training
from neuroevo.core.genome import Genome, grow
from neuroevo.runs.checkpoint import VERSION, Checkpoint, CheckpointError, from_bytes, load, save, to_bytes
from neuroevo.runs.state_codec import decode, encode
from neuroevo.system.directory import Directory
from neuroevo.training.loop import train
from neuroevo.training.state import TrainState, start
from tests.support.saved_states import ALGORITHM, trained, with_sum
from tests.support.toy import ToyEvaluator

seeds = st.integers(0, 2**63 - 1)
mutations = st.lists(st.tuples(seeds, st.floats(0, 1, width=32)), max_size=4)
genomes = st.builds(grow, st.builds(Genome, seeds), mutations)
dtypes = st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_])
arrays = hnp.arrays(dtypes, hnp.array_shapes(max_dims=3, max_side=4))


@dataclass(frozen=True)
class Inner:
    center: np.ndarray
    name: str


@dataclass(frozen=True)
class Everything(State):
    genome: Genome | None
    genomes: tuple[Genome, ...]
    numbers: tuple[float | int | bool | None, ...]
    array: np.ndarray
    inner: Inner | None
    inners: tuple[Inner, ...]


numbers = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
inners = st.builds(Inner, arrays, st.text())
states = st.builds(
    Everything,
    seeds,
    st.none() | genomes,
    st.lists(genomes, max_size=4).map(tuple),
    st.lists(numbers, max_size=4).map(tuple),
    arrays,
    st.none() | inners,
    st.lists(inners, max_size=2).map(tuple),
)


def same(a, b):
    """Equality with types, down to the dtypes and bits of arrays."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if is_dataclass(a):
        return all(same(getattr(a, name), getattr(b, name)) for name in a.__dataclass_fields__)
    return a == b


@settings(max_examples=200)
@given(states, st.integers(0, 10**6), st.floats(0, 1e9))
def test_any_state_comes_back(state, generation, seconds):
    checkpoint = Checkpoint(
        TrainState(state, generation, 5000, 17, seconds), {"env": {"name": "x"}}, {"metrics.jsonl": 3}
    )
    again = from_bytes(to_bytes(checkpoint), Everything)
    assert same(again.state.algorithm, state)
    assert (again.state.generation, again.state.max_episode_steps, again.state.steps) == (generation, 5000, 17)
    assert again.state.seconds == seconds
    assert (again.origin, again.lengths) == (checkpoint.origin, checkpoint.lengths)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithms_states_come_back(name, tmp_path):
    training = Training(seed=4, generations=3, validation_episodes=2, test_episodes=0)
    algorithm = ALGORITHMS[name](population=24)
    begun = start(algorithm, training)
    for state in [begun, *(state for state, _ in train(algorithm, ToyEvaluator(), training))]:
        with Directory(tmp_path) as folder:
            save(folder, "x", Checkpoint(state, {}, {}))
        assert same(load(tmp_path / "x", algorithm.state_type).state, state)


def earlier(body, name):
    """The body of a checkpoint as it was before states had a base class and archives a class."""
    fields = body["algorithm"]["fields"]
    if "archive" in fields:
        fields["archive"] = fields["archive"]["fields"]["behaviors"]
    if name in ("random_search", "ask_tell"):
        assert fields.pop("steps") == body["steps"]
    if name == "ask_tell":
        fields["finished"] = fields.pop("generation")
    return body


@pytest.mark.parametrize("name", [*ALGORITHM, "ask_tell"])
def test_states_from_before_they_had_a_base_class(name):
    algorithm = ALGORITHM.get(name, CMAES(population=8))
    data = trained(algorithm)
    _, body, arrays = data.split(b"\n", 2)
    old = with_sum(json.dumps(earlier(json.loads(body), name)).encode() + b"\n" + arrays)
    assert (old == data) == (name in ("ga", "es", "low_rank_es"))
    state = from_bytes(old, algorithm.state_type).state
    assert same(state, from_bytes(data, algorithm.state_type).state)
    assert (state.algorithm.generation, state.algorithm.steps) == (3, state.steps)


@dataclass(frozen=True)
class Holds(State):
    value: object


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "Holds.value is nan"),
        ((1.0, float("-inf")), r"Holds.value\[1\] is -inf"),
        ({1: 2}, "Holds.value is a dict"),
        (np.float32(1), "Holds.value is a float32"),
        (np.array([object()]), "Object arrays"),
    ],
)
def test_what_a_checkpoint_does_not_hold(value, message):
    with pytest.raises(ValueError, match=message):
        to_bytes(Checkpoint(TrainState(Holds(0, value), 0, 1), {}, {}))


def small():
    state = TrainState(Everything(3, Genome(5).child(6, 0.5), (), (1.5,), np.arange(3.0), None, ()), 12, 5000, 99, 1.25)
    return to_bytes(Checkpoint(state, {"training": {"seed": 1}}, {"metrics.jsonl": 10}))


def test_every_flipped_bit_is_noticed():
    data = small()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CheckpointError):
            from_bytes(bytes(flipped), Everything)


def test_every_truncation_is_noticed():
    data = small()
    for length in range(len(data)):
        with pytest.raises(CheckpointError, match="is damaged: .* bytes|is not a neuroevo checkpoint"):
            from_bytes(data[:length], Everything)
    content = len(data.split(b"\n", 1)[1])
    with pytest.raises(CheckpointError, match=f"is damaged: {content + 1} bytes .* {content}$"):
        from_bytes(data + b"x", Everything)


def with_head(**changes):
    first, rest = small().split(b"\n", 1)
    return json.dumps({**json.loads(first), **changes}).encode() + b"\n" + rest


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a neuroevo checkpoint"),
        (b"\n\n\n", "is not a neuroevo checkpoint"),
        (b"[1, 2]\n{}\n", "is not a neuroevo checkpoint"),
        (b'{"format": "zip"}\n', "is not a neuroevo checkpoint"),
        (pickle.dumps({"population": [1, 2, 3]}), "is not a neuroevo checkpoint"),
        (b"\x1f\x8b" + bytes(range(256)), "is not a neuroevo checkpoint"),
        (with_head(version=VERSION + 1), f"version {VERSION + 1} .* version {VERSION}"),
        (with_head(sha256="0" * 64), "is damaged: .* SHA-256"),
    ],
)
def test_foreign_files(data, message, tmp_path):
    path = tmp_path / "generation-000001.ckpt"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=message):
        load(path, Everything)


def test_a_whole_file_of_something_else_is_refused():
    content = b"[1, 2]\n"
    head = {"format": "neuroevo checkpoint", "version": VERSION, "bytes": len(content)}
    head["sha256"] = hashlib.sha256(content).hexdigest()
    with pytest.raises(CheckpointError, match=r"second line is \[1, 2\]"):
        from_bytes(json.dumps(head).encode() + b"\n" + content, Everything)


def test_an_array_whose_header_is_no_python():
    first, content = small().split(b"\n", 1)
    content = content.replace(b", }", b"(, }", 1)
    head = {**json.loads(first), "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    with pytest.raises(CheckpointError, match="does not fit"):
        from_bytes(json.dumps(head).encode() + b"\n" + content, Everything)


def test_another_algorithms_state_is_refused():
    with pytest.raises(CheckpointError, match=r"does not fit .*Inner .*\['array'.*expected"):
        from_bytes(small(), Inner)


def test_a_missing_file(tmp_path):
    with pytest.raises(CheckpointError, match="No such file"):
        load(tmp_path / "absent", Everything)


def test_relatives_take_little_room():
    """A paper-sized GA after 1,000 generations: 20 parents that share all but the last 30 mutations."""
    common = grow(Genome(1), tuple((seed, 0.002) for seed in range(970)))
    parents = []
    for parent in range(20):
        genome = common
        for seed in range(30):
            genome = genome.child(2**62 + 30 * parent + seed, 0.002)
        parents.append(genome)
    encoded = encode(Everything(0, parents[0], tuple(parents), (), np.zeros(0), None, ()))
    assert decode(encoded, Everything)[0].genomes == tuple(parents)
    assert len(json.dumps(encoded.genomes)) < 60_000
