"""The target of members.bin, the members of a run's generations."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from neuroevo.runs.members_format import IS_ROOT, IS_SEED, OF_ROOT, Record, pack

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.runs.members import MembersReader, kept_bytes
from neuroevo.runs.paths import MEMBERS
from tests.fuzz.parsers.target import Target

_TEMPORARY = TemporaryDirectory(prefix="neuroevo_fuzz_")  # as long as the process
_FOLDER = Path(_TEMPORARY.name)
_MOST = 20  # generations and members that are looked at


def _members(data: bytes) -> None:
    """A record after those of two generations if the first byte is odd, else the file as it is.

    Such a record is the parts that members_format describes, unpacked, the first two with their lengths in front.
    """
    content = data[1:]
    if data[:1] and data[0] % 2:
        content = b"".join(map(pack, _records())) + _packed(content)
    (_FOLDER / MEMBERS).write_bytes(content)
    reader = MembersReader(_FOLDER)
    assert kept_bytes(_FOLDER, reader.generations) <= len(content)
    for generation in filter(reader.kept, range(min(reader.generations, _MOST))):
        try:
            for index in range(min(len(reader.read(generation)), _MOST)):
                assert reader.lineage(generation, index)[0] == (generation, index)
                genome = reader.genome(generation, index)
                place = reader.find(genome)
                assert place is None or reader.genome(*place) == genome
        except UserError as error:
            assert str(_FOLDER / MEMBERS) in str(error)


def _packed(parts: bytes) -> bytes:
    """A record with right sizes and sum."""
    head_length = int.from_bytes(parts[:2], "little")
    head, rest = parts[2 : 2 + head_length], parts[2 + head_length :]
    columns_length = int.from_bytes(rest[:2], "little")
    columns, behaviors = rest[2 : 2 + columns_length], rest[2 + columns_length :]
    packed = [head, zlib.compress(columns), zlib.compress(behaviors) if behaviors else b""]
    whole = b"".join(packed)
    return struct.pack("<IIII", *map(len, packed), zlib.crc32(whole)) + whole


def _records() -> list[Record]:
    """Generation 0 comes from a seed and from roots; generation 1 are offspring of it, and have behaviors."""
    kinds, fitness, steps = np.zeros(3, np.int8), np.array([1.5, -2, 0]), np.array([4, 5, 6])
    first = np.array([[IS_SEED, 0], [IS_ROOT, 0], [OF_ROOT, 1]], np.int32)
    seeds, scales = np.array([7, 0, 8]), np.array([0, 0, 0.5], np.float32)
    roots = (Genome(3, network=1).child(4, 0.25), Genome(Center(np.ones(4))))
    second = np.array([[0, 0], [0, 1], [0, 0]], np.int32)
    behaviors = np.arange(6, dtype=np.float32).reshape(3, 2)
    return [
        Record(0, first, seeds, scales, kinds, fitness, steps, roots),
        Record(1, second, seeds + 1, scales + np.float32(0.5), kinds + 1, fitness, steps, (), behaviors, fitness),
    ]


def _files() -> list[bytes]:
    """A whole one, and records of a generation after those of _records() by their parts."""
    seeds = [b"\0" + b"".join(map(pack, _records()))]
    for record in _records():
        content = pack(replace(record, generation=record.generation + 2))
        head, columns, behaviors = _parts(content)
        lengths = [struct.pack("<H", len(part)) for part in (head, columns)]
        seeds.append(b"\1" + lengths[0] + head + lengths[1] + columns + behaviors)
    return seeds


def _parts(record: bytes) -> tuple[bytes, bytes, bytes]:
    """The parts of a record, unpacked."""
    head, columns, behaviors, _ = struct.unpack_from("<IIII", record)
    line, rest = record[16 : 16 + head], record[16 + head :]
    return line, zlib.decompress(rest[:columns]), zlib.decompress(rest[columns:]) if behaviors else b""


TARGETS = {"members": Target(_members, _files)}
