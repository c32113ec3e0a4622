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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from neuroevo.core import version
from neuroevo.core.observation_statistics import ObservationStatistics
from neuroevo.runs.pickles import seal_of
from neuroevo.runs.state_codec import Encoded, decode, encode
from neuroevo.system.directory import Directory
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
    """Writes a checkpoint atomically.

    Args:
        folder: The folder of checkpoints.
        name: The file to write or replace.
        checkpoint: Its content.

    Raises:
        OSError: It could not be written; the file is as it was, or complete.
    """
    folder.write(name, to_bytes(checkpoint))


def load(path: Path, state_type: type) -> Checkpoint:
    """Reads a checkpoint.

    Args:
        path: The file.
        state_type: The class of the algorithm's states.

    Returns:
        The checkpoint.

    Raises:
        CheckpointError: The file cannot be used.
    """
    try:
        return from_bytes(path.read_bytes(), state_type)
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error.strerror}") from None


def version_of(path: Path) -> int | None:
    """Reads which version of the format a checkpoint has, from its first line alone.

    Args:
        path: The file.

    Returns:
        The version; None if the file cannot be read or its first line is not that of a checkpoint.
    """
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline(_HEAD_BYTES))
        return head["version"] if head["format"] == FORMAT and isinstance(head["version"], int) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """Encodes a checkpoint.

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
    """Decodes a checkpoint.

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
        head = json.loads(first)
        if not newline or head["format"] != FORMAT:
            raise ValueError
        version, size, checksum = head["version"], head["bytes"], head["sha256"]
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"is not a {FORMAT}: its first line does not say so") from None
    if version != VERSION:
        raise CheckpointError(f"has version {version} of the format, this neuroevo reads version {VERSION}")
    if len(content) != size:
        raise CheckpointError(f"is damaged: {len(content):,} bytes after the first line, expected {size:,}")
    if hashlib.sha256(content).hexdigest() != checksum:
        raise CheckpointError("is damaged: its content does not match its SHA-256 sum")
    # From here on the content is as it was written; if it does not fit, something else wrote it.
    rest = io.BytesIO(content)
    try:
        body = json.loads(rest.readline())
        if not isinstance(body, dict):
            raise ValueError(f"its second line is {str(body)[:80]}, expected an object")
        if body["version"] != version:  # the sum is not of the first line
            raise ValueError(f"its first line says version {version}, its second one {body['version']}")
        read = np.lib.format.read_array  # NumPy gives it no types
        arrays = [read(rest, allow_pickle=False) for _ in range(body["arrays"])]  # type: ignore[no-untyped-call]
        values = [body["algorithm"], body["pending"], body["observation_statistics"]]
        encoded = Encoded(values, body["genomes"], arrays, body["centers"])
        algorithm, pending, observation_statistics = decode(
            encoded, state_type, tuple[PendingEvaluation, ...], ObservationStatistics
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
        return Checkpoint(state, body["origin"], body["lengths"], body.get("seal"))
    except (ValueError, KeyError, TypeError, TokenError) as error:  # the last: an array's header is not Python
        raise CheckpointError(f"does not fit this run: {error}") from None
