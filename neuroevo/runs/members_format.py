"""The bytes of members.bin: a generation's members in a record, one after another.

A record is the sizes of its three parts and their CRC-32 as uint32, little-endian, and the parts:

- a line of JSON: the generation, the number N of members, B and the dtype of behaviors, and `roots`, the genomes that
  members come from without being members of an earlier generation that the file has, as genome_json writes them; where
  mutations are scaled, `spreads`, the names of the centers that their kinds refer to
- compressed by zlib: parents int32 [N, 2], seeds int64 [N], scales float32 [N], kinds int8 [N], fitness float64 [N],
  steps int64 [N], and novelty float64 [N] if it is measured
- compressed by zlib: behaviors [N, B], if there are any

`parents` of a member are the generation and the index of the member that it is an offspring of; (-1, k) for an
offspring of root k, and (-2, k) for root k itself. A member without mutations, of a seed alone, is (-3, 0).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from neuroevo.core.genome import MAX_RANK, Genome
from neuroevo.runs.genome_json import genomes_from_json, genomes_to_json
from neuroevo.system.reading import parse_json

OF_ROOT, IS_ROOT, IS_SEED = -1, -2, -3
"""What stands for a generation in `parents` where there is no parent."""

_BEGIN = struct.Struct("<IIII")
_KEYS = {"generation", "members", "behaviors", "dtype", "novelty", "roots"}
_MOST_MEMBERS = 10_000_000
_MOST_BYTES = 1 << 31  # of a record's part when it is unpacked
_MOST_HEAD = 1 << 28
_DTYPES = ("|u1", "<f4", "<f8")
_COLUMNS = (  # name, dtype, numbers of a member
    ("parents", "<i4", 2),
    ("seeds", "<i8", 1),
    ("scales", "<f4", 1),
    ("kinds", "|i1", 1),
    ("fitness", "<f8", 1),
    ("steps", "<i8", 1),
)
_NOVELTY = ("novelty", "<f8", 1)


@dataclass(frozen=True, eq=False)
class Record:
    """A generation as the file has it.

    Attributes:
        generation: Its number, from 0.
        parents: int32 [N, 2], as the module says.
        seeds: int64 [N], of the last mutation; of the base where there is none.
        scales: float32 [N], of the last mutation; 0 where there is none.
        kinds: int8 [N], of the last mutation, as core.tree.encode_kind() gives them.
        fitness: float64 [N].
        steps: int64 [N], of all episodes of each together.
        roots: Genomes that members come from, [R].
        behaviors: uint8, float32 or float64 [N, B], NaN where all episodes of a member failed; None if they are not
            kept.
        novelty: float64 [N], NaN where the behavior is unknown; None where it is not measured.
        spreads: Names of the centers that kinds refer to.
    """

    generation: int
    parents: np.ndarray
    seeds: np.ndarray
    scales: np.ndarray
    kinds: np.ndarray
    fitness: np.ndarray
    steps: np.ndarray
    roots: Sequence[Genome] = ()
    behaviors: np.ndarray | None = None
    novelty: np.ndarray | None = None
    spreads: Sequence[str] = ()


@dataclass(frozen=True)
class Place:
    """Where a record is in the file.

    Attributes:
        at: Of its first byte.
        end: Of the byte after it.
        generation: Its number.
        members: N.
        width: B; 0 where behaviors are not kept.
    """

    at: int
    end: int
    generation: int
    members: int
    width: int


def pack(record: Record) -> bytes:
    """Writes a record.

    Args:
        record: What to write.

    Returns:
        Its bytes.
    """
    behaviors = record.behaviors
    head = {
        "generation": record.generation,
        "members": len(record.fitness),
        "behaviors": 0 if behaviors is None else behaviors.shape[1],
        "dtype": _DTYPES[0] if behaviors is None else behaviors.dtype.newbyteorder("<").str,
        "novelty": record.novelty is not None,
        "roots": genomes_to_json(record.roots),
        **({"spreads": list(record.spreads)} if record.spreads else {}),
    }
    columns = b"".join(
        np.asarray(getattr(record, name), dtype).tobytes() for name, dtype, _ in _columns(record.novelty is not None)
    )
    parts = [json.dumps(head).encode() + b"\n", zlib.compress(columns, 1)]
    parts.append(b"" if behaviors is None else zlib.compress(np.ascontiguousarray(behaviors).tobytes(), 1))
    whole = b"".join(parts)
    return _BEGIN.pack(*map(len, parts), zlib.crc32(whole)) + whole


def places(file: BinaryIO, at: int = 0, after: int = -1) -> Iterator[Place]:
    """Finds the records of a file without reading their numbers.

    Args:
        file: The file.
        at: Where to begin.
        after: The number of the generation before that, or -1.

    Yields:
        The records whose first two parts are there and make sense, up to the first of which that is not so.
    """
    size = file.seek(0, 2)
    while at + _BEGIN.size <= size:
        file.seek(at)
        sizes = _BEGIN.unpack(file.read(_BEGIN.size))[:3]
        end = at + _BEGIN.size + sum(sizes)
        if end > size or sizes[0] > _MOST_HEAD:
            return
        try:
            head = _head(file.read(sizes[0]))
        except ValueError:
            return
        if head["generation"] <= after:
            return
        yield Place(at, end, head["generation"], head["members"], head["behaviors"])
        at, after = end, head["generation"]


def unpack(file: BinaryIO, place: Place, behaviors: bool = True) -> Record:
    """Reads a record.

    Args:
        file: The file.
        place: Where it is.
        behaviors: Whether to read these, too.

    Returns:
        The record.

    Raises:
        ValueError: It is damaged, or no record.
    """
    file.seek(place.at)
    *sizes, checksum = _BEGIN.unpack(file.read(_BEGIN.size))
    whole = file.read(sum(sizes))
    if zlib.crc32(whole) != checksum:
        raise ValueError("its checksum is wrong")
    head = _head(whole[: sizes[0]])
    count, columns = head["members"], _columns(head["novelty"])
    content = _unzip(
        whole[sizes[0] : sizes[0] + sizes[1]], count * sum(np.dtype(d).itemsize * n for _, d, n in columns)
    )
    arrays: dict[str, np.ndarray] = {}
    at = 0
    for name, dtype, numbers in columns:
        array = np.frombuffer(content, dtype, count * numbers, at)
        arrays[name] = array.reshape(count, numbers) if numbers > 1 else array
        at += array.nbytes
    found = None
    if behaviors and head["behaviors"]:
        shape, dtype = (count, head["behaviors"]), np.dtype(head["dtype"])
        found = np.frombuffer(_unzip(whole[sizes[0] + sizes[1] :], dtype.itemsize * shape[0] * shape[1]), dtype)
        found = found.reshape(shape)
    roots, spreads = genomes_from_json(head["roots"]), tuple(head.get("spreads", ()))
    record = Record(head["generation"], **arrays, roots=roots, behaviors=found, spreads=spreads)
    _check(record)
    return record


def _columns(novelty: bool) -> tuple[tuple[str, str, int], ...]:
    return (*_COLUMNS, _NOVELTY) if novelty else _COLUMNS


def _head(line: bytes) -> Mapping[str, Any]:
    """The first part. ValueError: it is none."""
    head = parse_json(line)
    if not isinstance(head, dict) or head.keys() - {"spreads"} != _KEYS:
        raise ValueError(f"its first line is {str(head)[:80]}")
    for key, most in (("generation", 1 << 31), ("members", _MOST_MEMBERS), ("behaviors", _MOST_MEMBERS)):
        if type(head[key]) is not int or not 0 <= head[key] < most:
            raise ValueError(f"{key} is {str(head[key])[:40]}, expected a number from 0 to {most - 1:,}")
    if not isinstance(head.get("spreads", []), list) or not all(isinstance(e, str) for e in head.get("spreads", [])):
        raise ValueError(f"its spreads are {str(head['spreads'])[:80]}, expected names of centers")
    if head["dtype"] not in _DTYPES or type(head["novelty"]) is not bool or not isinstance(head["roots"], list):
        raise ValueError(f"its first line is {str(head)[:80]}")
    return head


def _unzip(data: bytes, size: int) -> bytes:
    """Unpacks a part, which has to have this size. ValueError: it has another, or is damaged."""
    if size > _MOST_BYTES:
        raise ValueError(f"a part of it has {size:,} bytes, expected at most {_MOST_BYTES:,}")
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(f"a part of it is damaged: {error}") from None
    if len(content) != size or not unpacking.eof:
        raise ValueError(f"a part of it has another length than the {size:,} bytes that its first line says")
    return content


def _check(record: Record) -> None:
    """ValueError: numbers are none of members that have played."""
    where, which = record.parents.T
    if (record.kinds > MAX_RANK).any() or (record.kinds < -len(record.spreads)).any() or (record.steps < 0).any():
        raise ValueError("its numbers are none of members that have played")
    if not np.isfinite(record.fitness).all() or not np.isfinite(record.scales).all() or (record.seeds < 0).any():
        raise ValueError("its numbers are none of members that have played")
    if (where >= record.generation).any() or (where < IS_SEED).any() or (which < 0).any():
        raise ValueError("a member's parent is of no earlier generation")
    if (which[np.isin(where, (OF_ROOT, IS_ROOT))] >= len(record.roots)).any():
        raise ValueError("a member comes from a genome that is not there")
