"""The files of a run, damaged at random: what was written, or one of our errors, in bounded memory and time.

Of checkpoints also those whose sum is right though their values are not: as another program may have written them.
"""

import io
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from neuroevo.runs.checkpoint import VERSION, CheckpointError, from_bytes, load, to_bytes, version_of
from neuroevo.runs.elites import newest_elite, read_elites
from neuroevo.runs.genome_json import genomes_from_json, genomes_to_json
from neuroevo.runs.json_lines import sealed
from neuroevo.runs.metrics_rows import read_rows
from neuroevo.runs.npy import read_array
from neuroevo.system.directory import Directory
from tests.runs.test_checkpoint import same

from neuroevo.core.errors import UserError
from neuroevo.runs.metrics_csv import last_csv_row
from neuroevo.runs.state_codec import encode
from neuroevo.training.loop import train
from tests.support.mutants import bounded, changed, damaged, fuzz, seeds
from tests.support.runs import config, new_run
from tests.support.saved_states import ALGORITHM, FAMILY, TRAINING, npy, trained, with_sum
from tests.support.toy import ToyEvaluator


@pytest.fixture(scope="module")
def checkpoints():
    """By the algorithm's name, as bytes."""
    return {name: trained(algorithm) for name, algorithm in ALGORITHM.items()}


def with_body(data, change):
    """A checkpoint whose second line is changed, with the right sum."""
    _, body, arrays = data.split(b"\n", 2)
    return with_sum(json.dumps(change(json.loads(body))).encode() + b"\n" + arrays)


@fuzz(150)
@given(seed=seeds)
def test_a_damaged_checkpoint_is_refused(checkpoints, seed):
    for name, data in checkpoints.items():
        mutant = damaged(data, seed)
        with bounded(16):
            try:
                read = from_bytes(mutant, ALGORITHM[name].state_type)
            except CheckpointError:
                continue
        assert mutant == data and to_bytes(read) == data


def usable(data, algorithm):
    """Whether a file is taken for a checkpoint. One that is has nothing in it that cannot be written and read again,
    and a generation can be played from it."""
    with bounded(16):
        try:
            read = from_bytes(data, algorithm.state_type)
        except CheckpointError:
            return False
    again = from_bytes(to_bytes(read), algorithm.state_type)
    assert same(again.state, read.state) and (again.origin, again.lengths) == (read.origin, read.lengths)
    try:
        algorithm.check_state(read.state.algorithm)
    except ValueError:
        return False
    if any(genome["network"] for genome in encode(read.state.algorithm).genomes):
        return False  # a real evaluator says that it has one network
    fresh = replace(read.state, pending=(), observation_statistics=None, confirmed_mean=None)
    more = replace(TRAINING, generations=read.state.generation + 1)
    assert next(train(algorithm, ToyEvaluator(), more, fresh))[0].generation == read.state.generation + 1
    return True


@fuzz(60)
@given(seed=seeds)
def test_values_of_another_kind_are_refused_though_the_sum_is_right(checkpoints, seed):
    for name, data in checkpoints.items():
        usable(with_body(data, lambda body: changed(body, seed)), ALGORITHM[name])


@fuzz(60)
@given(seed=seeds)
def test_damaged_bytes_with_the_right_sum(checkpoints, seed):
    for name, data in checkpoints.items():
        usable(with_sum(damaged(data.split(b"\n", 1)[1], seed)), ALGORITHM[name])


@fuzz(300)
@given(seed=seeds)
def test_changed_genomes(seed):
    with bounded(16):
        try:
            read = genomes_from_json(changed(genomes_to_json(FAMILY), seed))
        except (ValueError, TypeError):  # the latter of what is no list
            return
    assert genomes_from_json(genomes_to_json(read)) == read


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run's folder and its rows and elites."""
    path = tmp_path_factory.mktemp("run") / "run"
    new_run(path, network={"name": "mlp", "normalize_observations": True}, env={"name": "InvertedPendulum-v5"})
    return path, read_rows(path), read_elites(path)


@fuzz(200)
@given(seed=seeds)
def test_damaged_lines_are_refused(run, tmp_path_factory, seed):
    """What is read of a file is the beginning of what was written."""
    path, rows, elites = run
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    for name, read, written in (("metrics.jsonl", read_rows, rows), ("elites.jsonl", read_elites, elites)):
        (folder / name).write_bytes(damaged((path / name).read_bytes(), seed))
        with bounded(16):
            try:
                found = read(folder)
            except ValueError as error:
                assert str(folder / name) in str(error) and "line " in str(error)
                continue
        assert found == written[: len(found)]


@fuzz(150)
@given(seed=seeds)
def test_changed_values_of_lines_without_a_sum(run, tmp_path_factory, seed):
    """They are of the right kind, or refused; with the right sum, they are read or refused."""
    path, *_ = run
    folder = tmp_path_factory.getbasetemp() / "changed"
    folder.mkdir(exist_ok=True)
    for name in ("metrics.jsonl", "elites.jsonl"):
        lines = [json.loads(line) for line in (path / name).read_text().splitlines()]
        for line in lines:
            del line["crc32"]
        lines = changed(lines, seed)
        lines = [line if isinstance(line, dict) and line else {"x": 1} for line in lines]
        for write in (lambda line: json.dumps(line).encode() + b"\n", sealed):
            try:
                (folder / name).write_bytes(b"".join(write(line) for line in lines))
            except ValueError:  # NaN, which sealed() does not write
                continue
            with bounded(16):
                try:
                    (read_rows if name == "metrics.jsonl" else newest_elite)(folder)
                except ValueError as error:
                    assert str(folder / name) in str(error)


@fuzz(150)
@given(seed=seeds)
def test_a_damaged_metrics_csv(run, tmp_path_factory, seed):
    path, *_ = run
    folder = tmp_path_factory.getbasetemp()
    (folder / "metrics.csv").write_bytes(damaged((path / "metrics.csv").read_bytes(), seed))
    with bounded(16):
        try:
            last_csv_row(folder)
        except ValueError as error:
            assert "metrics.csv is damaged" in str(error)


ARRAYS = [np.arange(12, dtype=dtype).reshape(3, 4) for dtype in (np.float32, np.int64, np.uint8)]


@fuzz(300)
@given(seed=seeds)
def test_a_damaged_array(seed):
    for array in (*ARRAYS, np.asfortranarray(ARRAYS[0]), np.array(2.5), np.zeros((0, 3))):
        data = damaged(npy(array), seed)
        with bounded(16):
            try:
                read = read_array(io.BytesIO(data))
            except ValueError:
                continue
        assert read.nbytes <= len(data)
    for array in ARRAYS:
        read = read_array(io.BytesIO(npy(array)))
        assert same(read, array)


def test_records_that_numpys_format_does_not_give_back():
    """Arrays of arrays of nothing: what np.save writes of the type is read as another one, though it prints alike."""
    text = b"{'descr': '6<0f,8f', 'fortran_order': False, 'shape': (0, 3), }\n"
    header = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    with pytest.raises(ValueError, match="an array is of .*, expected what NumPy's format gives back as it is"):
        read_array(io.BytesIO(header))


def test_the_reference_batch(tmp_path, monkeypatch):
    """The reader of reference.npy adds what it expects to whatever is wrong with the array."""
    from neuroevo.runs import reference_file

    made = config(network={"name": "virtual_bn"})
    batch = np.zeros((128, 84, 84, 4), np.uint8)
    with Directory(tmp_path) as folder:
        folder.write("reference.npy", reference_file.content(batch))
    path = tmp_path / "reference.npy"
    data = path.read_bytes()
    assert np.array_equal(reference_file.load(tmp_path, made), batch)
    for seed in range(20):
        mutant = damaged(data[:200], seed) + data[200:]
        path.write_bytes(mutant)
        try:
            read = reference_file.load(tmp_path, made)
        except UserError as error:
            assert str(path) in str(error)
        else:
            assert read.shape == batch.shape and read.dtype == batch.dtype


def relatives(count, length):
    """Genomes that share all their mutations, as a list of JSON values: a few bytes each."""
    first = {"base": 1, "network": 0, "same": 0, "chain": [[seed, 0.5] for seed in range(length)]}
    return [first, *({**first, "same": length - 1, "chain": [[seed, 0.25]]} for seed in range(count))]


LARGE = {  # with a right sum: what it says -> what is wrong
    "arrays": (lambda body: {**body, "arrays": 10**12}, "an array has no header"),
    "lists": (lambda body: {**body, "origin": json.loads("[" * 500 + "]" * 500)}, "nests deeper than 64"),
    "a file": (lambda body: {**body, "lengths": {"../../x": 9}}, "lengths is .*, expected tables"),
    "bytes": (lambda body: {**body, "lengths": {"metrics.jsonl": -1}}, "lengths.metrics.jsonl is -1, expected"),
    "a number": (lambda body: {**body, "seconds": 10**400}, "seconds is int 1000.*, expected float"),
    "a place from the end": (lambda body: {**body, "algorithm": {"genome": -1}}, "genome -1 is not there, expected"),
}


@pytest.mark.parametrize("what", LARGE)
def test_what_a_checkpoint_cannot_ask_for(checkpoints, what):
    change, message = LARGE[what]
    data = with_body(checkpoints["ga"], change)
    with bounded(320), pytest.raises(CheckpointError, match=f"does not fit this run: .*{message}"):
        from_bytes(data, ALGORITHM["ga"].state_type)


def test_relatives_share_their_mutations_in_memory(checkpoints):
    """10,000 genomes of 10,000 mutations each are 20,000 nodes, not 100 million mutations."""
    data = with_body(checkpoints["ga"], lambda body: {**body, "genomes": relatives(10_000, 10_000)})
    with bounded(320):
        from_bytes(data, ALGORITHM["ga"].state_type)


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 2**62), (-1,), (0, 2**70), (1,) * 100, (3, True)])
def test_what_an_array_cannot_ask_for(checkpoints, shape):
    data = checkpoints["es"]
    header = npy(np.zeros(8, np.float32)).replace(b"(8,)", str(shape).encode())
    length = len(header) - 32 - 10
    header = header[:8] + length.to_bytes(2, "little") + header[10:]
    mutant = with_sum(data.split(b"\n", 1)[1].split(b"\x93NUMPY", 1)[0] + header)
    with bounded(16), pytest.raises(CheckpointError, match="does not fit this run: .*an array"):
        from_bytes(mutant, ALGORITHM["es"].state_type)


def test_a_file_of_zeros_or_a_pipe_is_not_read(checkpoints, tmp_path):
    first, _ = checkpoints["ga"].split(b"\n", 1)
    (tmp_path / "large").write_bytes(first + b"\n")
    with (tmp_path / "large").open("ab") as file:
        file.truncate(1 << 40)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, message in (("large", "is damaged: 1,099,"), ("pipe", "Not a regular"), ("device", "Not a regular")):
        with bounded(16), pytest.raises(CheckpointError, match=message):
            load(tmp_path / name, ALGORITHM["ga"].state_type)
        assert version_of(tmp_path / name) == (VERSION if name == "large" else None)


def test_a_center_without_its_weights(checkpoints):
    data = with_body(checkpoints["es"], lambda body: {**body, "centers": {}})
    with pytest.raises(CheckpointError, match="does not fit this run: the weights of center sha256:.* are missing"):
        from_bytes(data, ALGORITHM["es"].state_type)


def test_a_field_of_another_type_is_not_written(checkpoints):
    """Since it would not be read."""
    algorithm = ALGORITHM["ga"]
    read = from_bytes(checkpoints["ga"], algorithm.state_type)
    for changes in ({"steps": 1.0}, {"elite": 3}, {"parents": None}, {"generation": True}, {"seed": -1}):
        state = replace(read.state, algorithm=replace(read.state.algorithm, **changes))
        with pytest.raises(ValueError, match=next(iter(changes))):
            to_bytes(replace(read, state=state))


def test_a_checkpoint_of_another_algorithm(checkpoints, tmp_path):
    for name, data in checkpoints.items():
        for other, algorithm in ALGORITHM.items():
            if algorithm.state_type is not ALGORITHM[name].state_type:
                (tmp_path / "x").write_bytes(data)
                with pytest.raises(CheckpointError, match="does not fit"):
                    load(tmp_path / "x", algorithm.state_type)
                assert other != name
