"""One checkpoint: all that the next generation depends on, in a file that no code has to be run to read.

The first line is JSON: the format's name and version, and the length and SHA-256 sum of everything after it. The second
line is JSON: the version again, what of the configuration results depend on, the lengths of the run's files, and the
states of loop and algorithm with genomes as seeds. Then come dense arrays, if there are any, in NumPy's .npy format:
those of the states, and the weights of centers of evolution strategies, which the second line finds by their names.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.core import version
from neuroevo.core.archive import Archive
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.runs.npy import read_array
from neuroevo.runs.paths import ELITES, METRICS
from neuroevo.runs.pickles import seal_of
from neuroevo.runs.state_codec import Encoded, decode, encode
from neuroevo.runs.state_types import check_fields, hints_of
from neuroevo.system.directory import Directory
from neuroevo.system.reading import open_regular, parse_json
from neuroevo.training.elite_evaluation import PendingEvaluation
from neuroevo.training.state import TrainState

FORMAT, VERSION = "neuroevo checkpoint", 4
_HEAD_BYTES = 1000  # more than the first line ever has


class CheckpointError(ValueError):
    """A file is not a checkpoint that can be used; the message says why, without the file's name."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint file holds.

    Attributes:
        state: The state after a generation.
        origin: What of the configuration results depend on, as JSON values.
        lengths: Bytes of the run's files at that time, by name.
        seal: What a file says that seal_of() said of its algorithm's state when it was written.
    """

    state: TrainState
    origin: Mapping[str, Any]
    lengths: Mapping[str, int]
    seal: object = None


def save(folder: Directory, name: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically.

    Args:
        folder: The folder of checkpoints.
        name: The file to write or replace.
        checkpoint: Its content.

    Raises:
        OSError: It could not be written; the file is as it was, or complete.
    """
    folder.write(name, to_bytes(checkpoint))


def load(path: Path, state_type: type) -> Checkpoint:
    """Read a checkpoint.

    Args:
        path: The file.
        state_type: The class of the algorithm's states.

    Returns:
        The checkpoint.

    Raises:
        CheckpointError: The file cannot be used.
    """
    try:
        return from_bytes(_content(path), state_type)
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error.strerror}") from error


def version_of(path: Path) -> int | None:
    """Read the version of a checkpoint's format from its first line alone.

    Args:
        path: The file.

    Returns:
        The version; None if the file cannot be read or its first line is not that of a checkpoint.
    """
    try:
        with open_regular(path) as file:
            head = parse_json(file.readline(_HEAD_BYTES))
        return head["version"] if head["format"] == FORMAT and type(head["version"]) is int else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """Encode a checkpoint.

    Args:
        checkpoint: What to encode.

    Returns:
        The content of its file.

    Raises:
        ValueError: The state holds a value that a checkpoint cannot hold.
    """
    state = checkpoint.state
    encoded = encode(state.algorithm, state.pending, state.observation_statistics)
    algorithm, pending, observation_statistics = encoded.values
    body = {
        "version": VERSION,
        "neuroevo": version.VERSION,
        "origin": checkpoint.origin,
        "lengths": checkpoint.lengths,
        "generation": state.generation,
        "max_episode_steps": state.max_episode_steps,
        "steps": state.steps,
        "seconds": state.seconds,
        "confirmed_mean": state.confirmed_mean,
        "algorithm": algorithm,
        "pending": pending,
        "observation_statistics": observation_statistics,
        "genomes": encoded.genomes,
        "centers": encoded.centers,
        "arrays": len(encoded.arrays),
    }
    seal = seal_of(state.algorithm)
    if seal is not None:
        body["seal"] = seal
    rest = io.BytesIO()
    rest.write(json.dumps(body, allow_nan=False).encode() + b"\n")
    for array in encoded.arrays:
        np.save(rest, np.ascontiguousarray(array), allow_pickle=False)
    content = rest.getvalue()
    head = {"format": FORMAT, "version": VERSION, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return json.dumps(head).encode() + b"\n" + content


def from_bytes(data: bytes, state_type: type) -> Checkpoint:
    """Decode a checkpoint.

    Args:
        data: The content of its file.
        state_type: The class of the algorithm's states.

    Returns:
        The checkpoint.

    Raises:
        CheckpointError: The content cannot be used.
    """
    first, newline, content = data.partition(b"\n")
    try:
        version, size, checksum = _head(first + newline)
    except ValueError:
        raise CheckpointError(_FOREIGN) from None
    if version != VERSION:
        raise CheckpointError(f"has version {version} of the format, this neuroevo reads version {VERSION}")
    if len(content) != size:
        raise CheckpointError(_another_size(len(content), size))
    if hashlib.sha256(content).hexdigest() != checksum:
        raise CheckpointError("is damaged: its content does not match its SHA-256 sum")
    # From here on the content is as it was written; if it does not fit, something else wrote it.
    try:
        return _decoded(io.BytesIO(content), version, state_type)
    except (ValueError, KeyError, RecursionError) as error:
        raise CheckpointError(f"does not fit this run: {error}") from None
    except MemoryError:
        raise CheckpointError("does not fit into memory") from None


def _decoded(rest: io.BytesIO, version: int, state_type: type) -> Checkpoint:
    """Decode the lines after the first. KeyError, ValueError: they do not fit."""
    body = parse_json(rest.readline())
    if not isinstance(body, dict):
        raise ValueError(f"its second line is {str(body)[:80]}, expected an object")
    if body["version"] != version:  # the sum is not of the first line
        raise ValueError(f"its first line says version {version}, its second one {body['version']}")
    for key in body.keys() - _KEYS:
        raise ValueError(f"its second line has {key[:80]!r}, expected {', '.join(sorted(_KEYS))}")
    count = _count(body["arrays"], "arrays")
    arrays = [read_array(rest) for _ in range(count)]
    if rest.read(1):
        raise ValueError(f"something follows its {count} arrays")
    values = [_current(body["algorithm"], body, state_type), body["pending"], body["observation_statistics"]]
    algorithm, pending, observation_statistics = decode(
        Encoded(values, body["genomes"], arrays, body["centers"]),
        state_type,
        tuple[PendingEvaluation, ...],
        ObservationStatistics | None,
    )
    state = TrainState(
        algorithm=algorithm,
        generation=body["generation"],
        max_episode_steps=body["max_episode_steps"],
        steps=body["steps"],
        seconds=body["seconds"],
        pending=pending,
        observation_statistics=observation_statistics,
        confirmed_mean=body.get("confirmed_mean"),  # there were none before there were targets
    )
    check_fields(state, "the state")
    origin, lengths = body["origin"], body["lengths"]
    if not isinstance(origin, dict) or not isinstance(lengths, dict) or not lengths.keys() <= {METRICS, ELITES}:
        raise ValueError(f"origin is {str(origin)[:80]} and lengths is {str(lengths)[:80]}, expected tables")
    for name, length in lengths.items():
        _count(length, f"lengths.{name}")
    seal = body.get("seal")
    if seal is not None and not isinstance(seal, str):
        raise ValueError(f"seal is {str(seal)[:80]}, expected text")
    return Checkpoint(state, origin, lengths, seal)


def _current(state: Any, body: Mapping[str, Any], state_type: type) -> Any:
    """Return an algorithm's state with the fields that its class has now.

    Before states had a base class, some lacked its generation and steps, which are those of the run, or called the
    generation `finished`; an archive was the array of its behaviors.
    """
    if not (isinstance(state, dict) and isinstance(state.get("fields"), dict)):
        return state
    hints = hints_of(state_type)
    own = {name: body[name] for name in ("generation", "steps") if name in hints} | state["fields"]
    if "finished" in own and "finished" not in hints:
        own["generation"] = own.pop("finished")
    for name, value in own.items():
        if hints.get(name) is Archive and not (isinstance(value, dict) and "fields" in value):
            own[name] = {"fields": {"behaviors": value, "genomes": [], "fitness": None}}
    return {**state, "fields": own}


_FOREIGN = f"is not a {FORMAT}: its first line does not say so"
_KEYS = {"version", "neuroevo", "origin", "lengths", "generation", "max_episode_steps", "steps", "seconds"}
_KEYS |= {"confirmed_mean", "algorithm", "pending", "observation_statistics", "genomes", "centers", "arrays", "seal"}


def _content(path: Path) -> bytes:
    """Read a file if it is as long as its first line says: one of zeros may be larger than memory."""
    with open_regular(path) as file:
        try:
            _, size, _ = _head(file.readline(_HEAD_BYTES))
        except ValueError:
            raise CheckpointError(_FOREIGN) from None
        left = os.fstat(file.fileno()).st_size - file.tell()
        if left != size:
            raise CheckpointError(_another_size(left, size))
        file.seek(0)
        try:
            return file.read()
        except MemoryError:
            raise CheckpointError("does not fit into memory") from None


def _head(line: bytes) -> tuple[int, int, str]:
    """Version, bytes and sum in a first line. ValueError: it is not that of a checkpoint."""
    head = parse_json(line)
    if (
        not line.endswith(b"\n")
        or not isinstance(head, dict)
        or head.keys() != {"format", "version", "bytes", "sha256"}
    ):
        raise ValueError(_FOREIGN)
    version, size, checksum = head["version"], head["bytes"], head["sha256"]
    if head["format"] != FORMAT or type(version) is not int or type(size) is not int or not isinstance(checksum, str):
        raise ValueError(_FOREIGN)
    return version, size, checksum


def _another_size(size: int, expected: int) -> str:
    return f"is damaged: {size:,} bytes after the first line, expected {expected:,}"


def _count(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{what} is {str(value)[:80]}, expected a whole number of at least 0")
    return value
