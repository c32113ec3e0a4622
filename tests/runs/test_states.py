"""States and genomes in run.db: each is read back bit-identically, and changed rows are rejected."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from neuroevo.algorithms.base import State
from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.schema import Training
from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Center, Genome, LowRank, Scaled, grow
from neuroevo.runs.database import Database
from neuroevo.runs.genome_rows import GenomeWriter, read_genomes
from neuroevo.runs.state_rows import StateError, read_state, write_state
from neuroevo.runs.values import DamagedError
from neuroevo.training.loop import train
from neuroevo.training.state import TrainState, start
from tests.support.saved_states import ALGORITHM, FAMILY, same, trained
from tests.support.stored import stored_genomes, stored_state
from tests.support.toy import ToyEvaluator

seeds = st.integers(0, 2**63 - 1)
centers = st.builds(
    Center, st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9)
)
kinds = st.just(GAUSSIAN) | st.builds(Scaled, centers)
steps = st.lists(st.tuples(seeds, st.floats(-1, 1, width=32), kinds), max_size=4)
roots = st.builds(Genome, seeds | centers, st.integers(0, 3))
full_rank = st.builds(grow, roots, steps)
low_rank = st.builds(Genome.child, full_rank, seeds, st.floats(-1, 1, width=32), st.builds(LowRank, st.integers(1, 64)))
genomes = full_rank | low_rank
dtypes = st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_])
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))


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
    genome=st.none() | genomes,
    genomes=st.lists(genomes, max_size=4).map(tuple),
    numbers=st.lists(numbers, max_size=4).map(tuple),
    array=arrays,
    inner=st.none() | inners,
    inners=st.lists(inners, max_size=2).map(tuple),
)


def weights_of(genome):
    """Return the vectors of all centers on a genome's line."""
    found = [each.kind.spread for each in genome.line() if isinstance(each.kind, Scaled)]
    return [center.vector.tobytes() for center in [*found, genome.root] if isinstance(center, Center)]


@settings(max_examples=100)
@given(states, st.integers(0, 10**6), st.floats(0, 1e9))
def test_any_state_comes_back(state, generation, seconds):
    written = TrainState(state, generation, 5000, 17, seconds)
    read = stored_state(written, Everything)
    assert same(read, written)
    assert [weights_of(each) for each in read.algorithm.genomes] == [weights_of(each) for each in state.genomes]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithms_states_come_back(name):
    training = Training(seed=4, generations=3, validation_episodes=2, test_episodes=0)
    algorithm = ALGORITHM[name]
    played = [state for state, _ in train(algorithm, ToyEvaluator(), training)]
    pending = trained(ALGORITHM[name])
    for state in [start(algorithm, training), *played, pending]:
        assert same(stored_state(state, algorithm.state_type), state)


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
        (np.array([object()]), "dtype object, expected one of"),
        (np.array([1j]), "dtype complex128, expected one of"),
        (np.array(["text"]), "dtype <U4, expected one of"),
    ],
)
def test_what_cannot_be_stored(value, message):
    with pytest.raises(ValueError, match=message):
        stored_state(TrainState(Holds(0, value), 0, 1), Holds)


@pytest.mark.parametrize(
    "changes", [{"steps": 1.0}, {"elite": 3}, {"parents": None}, {"generation": True}, {"seed": -1}], ids=str
)
def test_a_field_of_another_type_is_not_written(changes):
    """It is rejected on writing, since reading would reject it."""
    state = trained(ALGORITHM["ga"])
    with pytest.raises(ValueError, match=next(iter(changes))):
        stored_state(replace(state, algorithm=replace(state.algorithm, **changes)), ALGORITHM["ga"].state_type)


def test_a_state_of_another_algorithm():
    for algorithm in ALGORITHM.values():
        state = trained(algorithm)
        for kind in {each.state_type for each in ALGORITHM.values()} - {algorithm.state_type}:
            with pytest.raises(StateError, match="is damaged: "):
                stored_state(state, kind)


@settings(max_examples=100)
@given(st.lists(genomes, max_size=6))
def test_genomes_of_every_kind_come_back(written):
    read = stored_genomes(written)
    assert read == written
    for one, other in zip(read, written, strict=True):
        lines = list(one.line()), list(other.line())
        assert [(e.digest, e.network, e.mutation) for e in lines[0]] == [
            (e.digest, e.network, e.mutation) for e in lines[1]
        ]


@pytest.fixture
def database(tmp_path):
    """A database with empty tables."""
    with Database(tmp_path / "run.db", "rwc") as database:
        database.execute("PRAGMA synchronous = OFF")
        database.create_tables()
        yield database


def sql(database, text, *values):
    """Execute a statement through a separate connection and return its rows."""
    with closing(sqlite3.connect(database.file)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        return connection.execute(text, values).fetchall()


def test_every_ancestor_is_stored_once(database):
    """Like a GA of the paper's size after 1,000 generations: 20 parents that share all but the last 30 mutations."""
    common = grow(Genome(1), tuple((seed, 0.002) for seed in range(970)))
    parents = [grow(common, [(2**62 + 30 * p + seed, 0.002) for seed in range(30)]) for p in range(20)]
    writer = GenomeWriter(database)
    rows = writer.rows_of([*parents, common, *parents])
    assert rows[:20] == rows[21:] and rows[20] == 971
    assert sql(database, "SELECT count(*), count(DISTINCT digest) FROM genomes") == [(971 + 600, 971 + 600)]
    writer.keep(parents)
    writer.rows_of([parent.child(5, 0.25) for parent in parents])
    assert sql(database, "SELECT count(*) FROM genomes") == [(971 + 620,)]
    found = read_genomes(database, rows[:20])
    assert len(found) == 971 + 600 and [found[row] for row in rows[:20]] == parents


def test_a_parent_that_is_not_kept_is_written_again(database):
    """Such a genome has two rows, and descendants of each are read back."""
    writer = GenomeWriter(database)
    [first] = writer.rows_of([Genome(3).child(1, 0.5)])
    writer.keep([])
    [second] = writer.rows_of([Genome(3).child(1, 0.5).child(2, 0.5)])
    assert sql(database, "SELECT count(*) FROM genomes") == [(5,)]
    assert read_genomes(database, [first, second])[second] == Genome(3).child(1, 0.5).child(2, 0.5)


CHANGES = (
    "seed = seed + 1", "seed = NULL", "seed = -1", "scale = scale * 2", "scale = NULL", "scale = 9e999",
    "network = network + 1", "network = -1", "rank = 3", "rank = 0", "rank = 1000", "parent = NULL", "parent = 1",
    "parent = id", "center = 1", "center = 2", "center = 99", "center = NULL", "digest = zeroblob(16)", "digest = x''",
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_genome_is_refused(database, change):
    """For any row, unless the change has no effect on its content."""
    numbers = GenomeWriter(database).rows_of(FAMILY)
    refused = 0
    for (row,) in sql(database, "SELECT id FROM genomes"):
        before = sql(database, "SELECT * FROM genomes WHERE id = ?", row)[0]
        sql(database, f"UPDATE genomes SET {change} WHERE id = ?", row)
        try:
            found = read_genomes(database, numbers)
        except DamagedError as error:
            assert str(database.file) in str(error) and "genome " in str(error)
            refused += 1
        else:
            assert [found[number] for number in numbers] == FAMILY
        sql(database, "DELETE FROM genomes WHERE id = ?", row)
        sql(database, f"INSERT INTO genomes VALUES ({', '.join('?' * len(before))})", *before)
    assert refused
    assert [read_genomes(database, numbers)[number] for number in numbers] == FAMILY


@pytest.mark.parametrize("change", ["DELETE FROM genomes WHERE id = 2", "DELETE FROM centers"])
def test_missing_rows(database, change):
    numbers = GenomeWriter(database).rows_of(FAMILY)
    sql(database, change)
    with pytest.raises(DamagedError, match="genome .* is (missing|invalid)"):
        read_genomes(database, numbers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("weights = zeroblob(32)", "the weights of the center sha256:.* are those of sha256:"),
        ("weights = x'00'", "the center sha256:.* is invalid"),
        ("weights = x''", "the center sha256:.* is invalid"),
        ("weights = x'0000807f'", "the center sha256:.* is invalid"),
        ("weights = NULL", "the weights of center sha256:.* are missing"),
        ("name = name || 'x'", "are those of"),
    ],
)
def test_a_changed_center_is_refused(database, change, message):
    state = trained(ALGORITHM["es"])
    database.execute("BEGIN")
    write_state(database, state, GenomeWriter(database))
    database.execute("COMMIT")
    kind = ALGORITHM["es"].state_type
    read = read_state(database, 3, kind).state
    assert same(read, state)
    assert weights_of(read.algorithm.center) == weights_of(state.algorithm.center) != []
    sql(database, f"UPDATE centers SET {change} WHERE weights IS NOT NULL")
    with pytest.raises(StateError, match=f"^is damaged: .*{message}"):
        read_state(database, 3, kind)


def test_changed_arrays_are_refused(database):
    """Arrays of another state, in another order, or with other values."""
    algorithm = ALGORITHM["es"]
    database.execute("BEGIN")
    for generation in (3, 4):
        played = trained(algorithm)
        pending = tuple(
            replace(e, record=replace(e.record, generation=e.record.generation + generation - 3))
            for e in played.pending
        )
        write_state(database, replace(played, generation=generation, pending=pending), GenomeWriter(database))
    database.execute("COMMIT")
    ids = [row for (row,) in sql(database, "SELECT id FROM arrays WHERE state = 4 ORDER BY id")]
    assert len(ids) > 2 and read_state(database, 4, algorithm.state_type)
    every = sql(database, "SELECT * FROM arrays")
    for change in (
        "UPDATE arrays SET data = zeroblob(length(data)) WHERE state = 4",
        "UPDATE arrays SET shape = '[' || length(data) / 4 || ', 1]' WHERE state = 4",
        "UPDATE arrays SET dtype = '<i4' WHERE dtype = '<f4' AND state = 4",
        "DELETE FROM arrays WHERE state = 4",
        f"DELETE FROM arrays WHERE id = {ids[-1]}",
        "UPDATE arrays SET state = 7 - state",
        f"UPDATE arrays SET id = 1000 WHERE id = {ids[0]}",
        "UPDATE arrays SET state = NULL WHERE state = 4",
    ):
        sql(database, change)
        with pytest.raises(StateError, match="^is damaged: "):
            read_state(database, 4, algorithm.state_type)
        sql(database, "DELETE FROM arrays")
        for row in every:
            sql(database, f"INSERT INTO arrays VALUES ({', '.join('?' * len(row))})", *row)
    assert read_state(database, 4, algorithm.state_type)


def test_where_a_genome_was_a_member_first(database):
    writer = GenomeWriter(database)
    [parent] = writer.rows_of([FAMILY[1]])  # like a genome from which a run starts
    numbers = writer.members([FAMILY[1], FAMILY[2]], 4)
    assert writer.members([FAMILY[1], FAMILY[2]], 5) == numbers and numbers[0] == parent
    births = {}
    found = read_genomes(database, numbers, births)
    assert births == {found[1]: None, found[parent]: (4, 0), found[numbers[1]]: (4, 1)}
    for change in ("generation = 3", "place = 7", "generation = NULL, place = NULL", "generation = NULL"):
        sql(database, f"UPDATE genomes SET {change} WHERE id = ?", parent)
        with pytest.raises(UserError, match=f"generation or place of genome {parent} has been changed"):
            read_genomes(database, numbers, {})
