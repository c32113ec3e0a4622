"""Targets: the files of a run's folder.

Where a checksum or a code would stop every mutant, the target makes the right one, so that what is behind is reached.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from neuroevo.config.signature import SIGNATURE, Signed, Unsigned, check_signature, write_signature
from neuroevo.runs.checkpoint import CheckpointError, from_bytes, to_bytes
from neuroevo.runs.elites import newest_elite, read_elites
from neuroevo.runs.genome_json import genome_from_json, genome_to_json, genomes_from_json, genomes_to_json
from neuroevo.runs.journal import RunJournal, _decode, _encode
from neuroevo.runs.journal_file import JournalFile
from neuroevo.runs.metrics_rows import read_rows
from neuroevo.runs.npy import read_array
from neuroevo.system.directory import Directory
from neuroevo.system.user_key import sign
from tests.runs.test_checkpoint import same

from neuroevo.core.episode import DIGEST_BYTES, EpisodeResults
from neuroevo.core.genome import Genome
from neuroevo.core.named_code import NamedCode
from neuroevo.runs.metrics_csv import columns_of, csv_lines, last_csv_row
from neuroevo.runs.paths import CSV, ELITES, JOURNAL, METRICS
from neuroevo.system.reading import parse_json
from tests.fuzz.parsers.target import Target
from tests.support.runs import new_run
from tests.support.saved_states import ALGORITHM, FAMILY, npy, trained, with_sum

_TEMPORARY = TemporaryDirectory(prefix="neuroevo_fuzz_")  # as long as the process
_FOLDER = Path(_TEMPORARY.name)
_NAMES = list(ALGORITHM)


def _checkpoint(data: bytes) -> None:
    """The first byte is the algorithm, whose state it is to be."""
    kind = ALGORITHM[_NAMES[data[0] % len(_NAMES) if data else 0]].state_type
    try:
        read = from_bytes(with_sum(data[1:]), kind)
    except CheckpointError as error:
        assert str(error)
        return
    again = from_bytes(to_bytes(read), kind)
    assert same(again.state, read.state) and (again.origin, again.lengths) == (read.origin, read.lengths)


def _checkpoints() -> list[bytes]:
    states = [trained(algorithm) for algorithm in ALGORITHM.values()]
    return [bytes([number]) + state.split(b"\n", 1)[1] for number, state in enumerate(states)]


def _array(data: bytes) -> None:
    try:
        read = read_array(io.BytesIO(data))
    except ValueError as error:
        assert str(error).startswith("an array")
        return
    assert read.nbytes <= len(data) and read.flags.writeable
    assert same(read_array(io.BytesIO(npy(read))), read)


def _arrays() -> list[bytes]:
    many = [np.arange(12, dtype=dtype).reshape(3, 4) for dtype in (np.float32, np.int64, np.uint8)]
    return [npy(array) for array in (*many, np.asfortranarray(many[0]), np.array(2.5), np.zeros((0, 3)))]


def _genomes(data: bytes) -> None:
    try:
        values = parse_json(data)
        read = genomes_from_json(values if isinstance(values, list) else [values])
    except ValueError as error:
        assert str(error)
        return
    assert genomes_from_json(genomes_to_json(read)) == read


def _lines_of(name: str, data: bytes) -> None:
    """Writes the file: lines with a right sum if the first byte is odd, else as they are."""
    lines = data[1:].split(b"\n")
    if data[:1] and data[0] % 2:
        seals = [b', "crc32": "%08x"}' % zlib.crc32(line) for line in lines]
        lines = [line[:-1] + seal if line else b"" for line, seal in zip(lines, seals, strict=True)]
    (_FOLDER / name).write_bytes(b"\n".join(lines))


def _metrics(data: bytes) -> None:
    _lines_of(METRICS, data)
    try:
        rows = read_rows(_FOLDER)
    except ValueError as error:
        assert str(_FOLDER / METRICS) in str(error) and "line " in str(error)
        return
    csv_lines(rows, list(dict.fromkeys(name for row in rows for name in columns_of(row))), header=True)


def _elites(data: bytes) -> None:
    _lines_of(ELITES, data)
    try:
        elites = read_elites(_FOLDER)
    except ValueError as error:
        assert str(_FOLDER / ELITES) in str(error) and "line " in str(error)
        return
    last, newest = newest_elite(_FOLDER)
    assert last == len(elites) - 1 and (newest is None or newest.genome == elites[-1].genome)
    for before, elite in zip([None, *elites], elites, strict=False):
        earlier = None if before is None else before.genome
        assert genome_from_json(genome_to_json(elite.genome, earlier), earlier) == elite.genome


def _lines(name: str) -> list[bytes]:
    """A run's lines without sums, once to be read so, and once to be sealed again."""
    path = _FOLDER / "run"
    if not path.exists():
        new_run(path, network={"name": "mlp", "normalize_observations": True}, env={"name": "InvertedPendulum-v5"})
    rows = [json.loads(line) for line in (path / name).read_text().splitlines()]
    text = b"".join(json.dumps({k: v for k, v in row.items() if k != "crc32"}).encode() + b"\n" for row in rows)
    return [b"\0" + text, b"\1" + text]


def _csv(data: bytes) -> None:
    (_FOLDER / CSV).write_bytes(data)
    try:
        last_csv_row(_FOLDER)
    except ValueError as error:
        assert f"{CSV} is damaged" in str(error)


def _csvs() -> list[bytes]:
    _lines(METRICS)
    return [(_FOLDER / "run" / CSV).read_bytes(), b'a,"b\nc",d\n1,2,\n']


def _journal(data: bytes) -> None:
    """A record with the right sum if the first byte is odd, else all that follows the file's first line."""
    records = data[1:]
    if data[:1] and data[0] % 2:
        records = struct.pack("<II", len(records), zlib.crc32(records)) + records
    with Directory(_FOLDER) as folder:
        journal = RunJournal(folder, {}, None)
        journal.add(_DIGESTS, _RESULTS)  # so that the file has its first line
        journal.close()
        path = _FOLDER / JOURNAL
        head = path.read_bytes().split(b"\n", 1)[0] + b"\n"
        path.write_bytes(head + records)
        owner = json.loads(head)["owner"]
        file = JournalFile(folder, JOURNAL, owner)
        kept = list(file.records)
        file.close()
        journal = RunJournal(folder, {}, None)
        assert journal.seconds >= 0 and journal.episodes >= 0
        journal.close()
        path.unlink(missing_ok=True)
    for record in kept:
        try:
            digests, results, seconds = _decode(record)
        except ValueError as error:
            assert str(error)
            continue
        again, same_results, then = _decode(_encode(digests, results, seconds))
        assert (again, then) == (digests, seconds) and same(same_results.ids, results.ids)
        assert list(same_results.failures) == list(results.failures) and same(same_results.behaviors, results.behaviors)


_RESULTS = EpisodeResults(
    np.arange(3), np.array([1.5, -2, 0]), np.array([4, 5, 6]), ["", "it fell", ""], np.ones((3, 5)), np.ones((3, 2))
)
_DIGESTS = [bytes([number] * DIGEST_BYTES) for number in range(len(_RESULTS))]


def _journals() -> list[bytes]:
    counted = EpisodeResults(
        np.arange(2), np.zeros(2), np.ones(2, int), ["", ""], np.ones((2, 0)), np.ones((2, 4), np.uint8), np.arange(2)
    )
    records = [_encode(_DIGESTS[: len(results)], results, 2.5) for results in (_RESULTS, counted)]
    whole = b"".join(struct.pack("<II", len(record), zlib.crc32(record)) + record for record in records)
    return [b"\0" + whole, *(b"\1" + record for record in records)]


def _signature(data: bytes) -> None:
    """Signed with a key of its own, if it has what is signed; config.toml is as the signature says."""
    folder = _FOLDER / "signed"
    given = data
    with _another_key():
        try:
            values = json.loads(data)
            code = sign("run", Signed(values["config"], values["modules"], values["files"]).to_bytes())
            given = json.dumps({**values, "hmac": code}).encode()
        except (ValueError, LookupError, TypeError, RecursionError):
            pass
        (folder / SIGNATURE).write_bytes(given)
        try:
            kept = check_signature(folder, _CONFIG, _NAMED)
        except Unsigned as error:
            assert str(error)
            return
    assert set(kept) <= {"fuzzed_module"}


@contextmanager
def _another_key() -> Iterator[None]:
    """The user's own key is not touched."""
    with patch.dict(os.environ, XDG_STATE_HOME=str(_FOLDER / "state")):
        yield


_CONFIG = "[env]\n"
_NAMED = [
    NamedCode("network.name", "imports the module fuzzed_module", module="fuzzed_module"),
    NamedCode("env.name", "has MuJoCo read a file", file=_FOLDER / "signed" / "robot.xml"),
]


def _signatures() -> list[bytes]:
    folder = _FOLDER / "signed"
    (folder / "own").mkdir(parents=True, exist_ok=True)
    (folder / "own" / "fuzzed_module.py").write_text("x = 1\n")
    (folder / "robot.xml").write_text("<mujoco/>\n")
    with Directory(folder) as opened, _another_key():
        write_signature(opened, [_CONFIG, "[env] # before\n"], _NAMED)
    return [(folder / SIGNATURE).read_bytes()]


TARGETS = {
    "checkpoint": Target(_checkpoint, _checkpoints),
    "npy": Target(_array, _arrays),
    "genomes": Target(_genomes, lambda: [json.dumps(genomes_to_json(family)).encode() for family in _FAMILIES]),
    "metrics": Target(_metrics, lambda: _lines(METRICS)),
    "elites": Target(_elites, lambda: _lines(ELITES)),
    "metrics_csv": Target(_csv, _csvs),
    "journal": Target(_journal, _journals),
    "signature": Target(_signature, _signatures),
}
_FAMILIES = [FAMILY, [Genome(1)], [FAMILY[3], FAMILY[0]]]
