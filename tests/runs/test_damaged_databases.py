"""Invalid values in a run's database are rejected or have no effect, in bounded memory and time.

The values are of other types than the tables allow, as another program may write them, or have a valid checksum without
being a run's.
"""

import json
import random
import re
import shutil
import zlib
from contextlib import contextmanager
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given

from neuroevo.core.errors import UserError
from neuroevo.core.state_codec import encode
from neuroevo.runs.database import Database
from neuroevo.runs.genome_rows import GenomeWriter
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.runs.state_rows import StateError, read_state, write_state
from neuroevo.sessions.folder import RunFolder
from neuroevo.training.loop import train
from tests.support.damage import REFUSED, assert_equal_or_refused, attempt, everything, forge, put
from tests.support.databases import query
from tests.support.mutants import bounded, changed, fuzz, seeds
from tests.support.runs import new_run, play
from tests.support.saved_states import ALGORITHM, TRAINING, trained
from tests.support.toy import ToyEvaluator

ES = {"algorithm": {"name": "es", "population": 4, "sigma": 0.1}}
GA = {"algorithm": {"population": 4}}  # few, since each test value of each column reads every member
TABLES = {
    "ga": ("run", "sessions", "genomes", "generations", "members", "populations", "episodes"),
    "es": ("arrays", "centers", "genomes", "states", "state_centers"),
}
VALUES = ("", "\ud7ff\n\x1b[31mx", b"\xff" * 9, 2**63 - 1, 0.5, inf)
KINDS = {"INTEGER": int, "REAL": int | float, "TEXT": str, "BLOB": bytes}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Interrupted runs, what readers return of them, and their states."""
    found = {}
    for name, calls, changes in (("ga", 3, GA), ("es", 2, ES)):
        path = tmp_path_factory.mktemp(name) / "run"
        with pytest.raises(KeyboardInterrupt):
            new_run(path, ToyEvaluator(interrupt_at=2 * calls + 1), **changes)
        states = {number: RunReader(path).state(number) for number in RunReader(path).checkpoints()}
        found[name] = path, everything(path, 2), states
    return found


@pytest.mark.parametrize(
    ("name", "table"),
    [
        pytest.param(name, table, marks=[pytest.mark.thorough] * (table in ("genomes", "generations", "members")))
        for name, tables in TABLES.items()
        for table in tables
    ],
)
def test_values_of_other_types(runs, tmp_path, name, table):
    """Replace any column of the last row, with a valid checksum if the row has one, or with the old checksum.

    By null, -1, and some of the other values.
    """
    path, expected, states = runs[name]
    assert query(path, f"SELECT count(*) FROM {table}")[0][0]
    other = tmp_path / "run"
    shutil.copytree(path, other)
    data = (path / "run.db").read_bytes()
    columns = [row[1:4] for row in query(path, f"PRAGMA table_info({table})")]
    for column, kind, required in columns:
        for value in (None, -1, *random.Random(column).sample(VALUES, 2)):
            for right in (False, True) if value in (None, -1) else (True,):
                (other / "run.db").write_bytes(data)
                put(other, table, column, value, right)
                found = everything(other, 2)
                resumed = attempt(lambda: RunFolder.resume(other))
                if resumed != REFUSED:
                    resumed.close()
                possible = (value is None and not required) or (isinstance(value, KINDS[kind]) and value != inf)
                if not right or not possible:
                    assert_equal_or_refused(found, expected, states)


FORGED = {  # table, changes -> message of every reader of the table
    "metrics that are not a table": ("generations", {"metrics": "[]"}, "metrics of generation 1 are"),
    "metrics that are text": ("generations", {"metrics": '{"x": "1"}'}, "metrics of generation 1 are invalid"),
    "metrics of half a pair": ("generations", {"metrics": '{"\\ud800": 1}'}, "metrics of generation 1 are invalid"),
    "metrics that are infinite": ("generations", {"metrics": '{"x": 1e999}'}, "metrics of generation 1 are invalid"),
    "metrics called as a column": ("generations", {"metrics": '{"generation": 7}'}, "metrics of generation 1 are"),
    "retries": ("generations", {"metrics": '{"retries": "7"}'}, "retries is 7, expected an integer"),
    "nested metrics": ("generations", {"metrics": "[" * 9999}, "metrics of generation 1 are invalid: .*deeper"),
    "a normalizer": ("generations", {"normalizer_mean": b"1234567"}, "normalizer of generation 1 is invalid"),
    "half a normalizer": ("generations", {"normalizer_mean": bytes(16)}, "normalizer of generation 1 is invalid"),
    "another normalizer": (
        "generations", {"normalizer_mean": bytes(8), "normalizer_std": bytes(8)}, "normalizer of generation 1 is inv",
    ),
    "another elite": ("generations", {"elite": 10**6}, "genome 1000000 is missing"),
    "no origin": ("run", {"origin": "{}"}, "origin in its table run"),
    "an origin that is not a table": ("run", {"origin": "[1]"}, "origin in its table run"),
    "no info": ("run", {"info": "{}"}, "info in its table run"),
    "a configuration": ("run", {"config": "x = ["}, "config.toml"),
    "a session": ("sessions", {"info": "[1, 2]", "process": "}"}, ""),
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_rows_with_the_right_checksum(tmp_path, what):
    table, changes, message = FORGED[what]
    path = tmp_path / "run"
    new_run(path, training={"generations": 2})
    forge(path, table, "generation = 1" if table == "generations" else "id = 1", **changes)
    reads = [lambda: RunReader(path).elite()[1], lambda: RunReader(path).about(), lambda: RunReader(path).rows()]
    reads.append(lambda: play(RunFolder.resume(path, ["training.generations=3"])))
    refusals = []
    for read in reads:
        try:
            read()
        except UserError as error:
            refusals.append(str(error))
    assert all("\n" not in each and str(path) in each for each in refusals)
    assert any(re.search(message, each) for each in refusals) or not message


def stored(path, algorithm):
    """A folder whose database contains only the state of an algorithm."""
    path.mkdir()
    with Database(path / "run.db", "rwc") as database:
        database.execute("PRAGMA synchronous = OFF")
        database.create_tables()
        database.execute("BEGIN")
        write_state(database, trained(algorithm), GenomeWriter(database))
        database.execute("COMMIT")
    return path


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders, by algorithm name."""
    path = tmp_path_factory.mktemp("states")
    return {name: stored(path / name, algorithm) for name, algorithm in ALGORITHM.items()}


@contextmanager
def another_value(path, change):
    """Replace a state's value in the block, with a valid checksum."""
    (text,) = query(path, "SELECT value FROM states")[0]
    forge(path, "states", "1", value=json.dumps(change(json.loads(text))))
    try:
        yield
    finally:
        forge(path, "states", "1", value=text)


def usable(path, algorithm):
    """Return whether a state can be read. Check that a readable state survives a round trip, and that a generation can
    be played from it."""
    with Database(path / "run.db") as database, bounded(16):
        try:
            read = read_state(database, 3, algorithm.state_type).state
        except StateError:
            return False
    try:
        algorithm.check_state(read.algorithm)
    except ValueError:
        return False
    if any(genome.network not in (0, str(genome.network)) for genome in encode(read.algorithm).genomes):
        return False  # a real evaluator reports that it has one network
    fresh = replace(read, pending=(), observation_statistics=None, confirmed_mean=None, stopped="")
    more = replace(TRAINING, generations=read.generation + 1)
    try:
        after, _ = next(train(algorithm, ToyEvaluator(), more, fresh))
    except UserError as error:  # raised by an optimizer that replays its history
        assert "returns different vectors than in the original run" in str(error)
        return False
    assert after.generation == read.generation + 1
    return True


@fuzz(6)
@given(seed=seeds)
def test_states_of_another_kind_are_refused_though_the_checksum_is_right(folders, seed):
    for name, path in folders.items():
        with another_value(path, lambda value: changed(value, seed)):
            usable(path, ALGORITHM[name])


def test_a_changed_state_is_usable_again(folders):
    """The previous test restores what it changes, and does not find everything damaged."""
    for name, path in folders.items():
        with another_value(path, lambda value: changed(value, 0)):
            usable(path, ALGORITHM[name])
        assert usable(path, ALGORITHM[name])


LARGE = {  # changed state -> message
    "arrays": (lambda value: {**value, "arrays": 10**12}, "its .* arrays differ from the arrays"),
    "lists": (lambda value: {**value, "values": json.loads("[" * 500 + "]" * 500)}, "nests deeper than 64"),
    "a number": (lambda value: {**value, "max_episode_steps": 10**400}, "max_episode_steps is"),
    "a negative place": (lambda value: {**value, "values": [{"genome": -1}]}, "genome -1 is out of range, expected"),
    "genomes": (lambda value: {**value, "genomes": [10**12]}, "its genomes are .*, expected row numbers up to"),
    "later genomes": (
        lambda value: {**value, "genomes": [1, 10**5]},
        "its genomes are .*, expected row numbers up",
    ),
    "true": (lambda value: {**value, "genomes": [True]}, "its genomes are"),
    "no value": (lambda value: [], r"its value is \[\], expected"),
    "another key": (lambda value: {**value, "more": 1}, "its value is .*, expected"),
}


@pytest.mark.parametrize("what", LARGE)
def test_what_a_state_cannot_ask_for(folders, what):
    (change, message), path = LARGE[what], folders["ga"]
    refused = pytest.raises(StateError, match=f"^is damaged: .*{message}")
    with another_value(path, change), Database(path / "run.db") as database, bounded(16), refused:
        read_state(database, 3, ALGORITHM["ga"].state_type)


@pytest.mark.parametrize(
    "shape", [[10**12], [2**62, 2**62], [-1], [0, 2**70], [0, 2**39, 2**39], [1] * 100, [3, True], {}]
)
def test_what_an_array_cannot_ask_for(tmp_path, shape):
    """Of a state's arrays, and of a reference batch, which cannot be replaced."""
    path = tmp_path / "run"
    new_run(path, network={"name": "virtual_bn"}, training={"generations": 1}, **ES)
    reference = query(path, "SELECT reference FROM run")[0][0]
    data = b"" if 0 in list(shape) else query(path, "SELECT data FROM arrays WHERE id = ?", reference)[0][0]
    for number, read in ((reference, RunReader(path).reference_batch), ("state = 1", lambda: RunReader(path).state(1))):
        where = number if isinstance(number, str) else f"id = {number}"
        forge(path, "arrays", where, shape=json.dumps(shape), data=data)
        with bounded(64), pytest.raises(UserError, match=f"{path / 'run.db'}.* array") as caught:
            read()
        assert "\n" not in str(caught.value)


def test_behaviors_that_would_fill_the_memory(tmp_path):
    """1 MB of compressed behaviors that expand to 1 GB."""
    path = tmp_path / "run"
    new_run(path, training={"generations": 1})
    packer = zlib.compressobj(9)
    first, again = (packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    bomb = first + 1023 * again  # without the end, which no reader gets to
    put(path, "populations", "behaviors", bomb, right=True)
    with bounded(600), pytest.raises(UserError, match="behaviors of generation 0 are invalid: .* larger than"):
        MembersReader(path).read(0)
    for dtype in ("O", "V0", "f4,(", "<f2", "|S1"):
        put(path, "populations", "dtype", dtype, right=True)
        with pytest.raises(UserError, match="behaviors of generation 0 are invalid: they have dtype"):
            MembersReader(path).read(0)
