"""One checkpoint: all that the next generation depends on, in a file that no code has to be run to read.

The first line is JSON: the format's name and version, and the length and SHA-256 sum of everything after it. The second
line is JSON: the version again, what of the configuration decides results, how long the run's files were, the loop's
and the algorithm's state with genomes as seeds. Then come dense arrays, if there are any, in NumPy's .npy format:
centers of evolution strategies among them, each under its name.
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

import neuroevo
from neuroevo.elite_tests import Untested
from neuroevo.files import write_atomically
from neuroevo.normalization import Moments
from neuroevo.state_codec import Encoded, decode, encode
from neuroevo.train import TrainState

FORMAT, VERSION = "neuroevo checkpoint", 3
_READS = (1, 2, 3)  # 1 was before elites were tested beside the generations after, 2 before observations had moments


class CheckpointError(ValueError):
    """A file is not a checkpoint that can be used; the message says why, without the file's name."""


@dataclass(frozen=True)
class Checkpoint:
    """state: after a generation. origin: what results depend on, as JSON values. lengths: bytes of the run's files."""

    state: TrainState
    origin: Mapping[str, Any]
    lengths: Mapping[str, int]


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Writes the checkpoint, atomically. OSError: it could not be written, and `path` is as it was."""
    write_atomically(path, to_bytes(checkpoint))


def load(path: Path, state_kind: type) -> Checkpoint:
    """Reads a checkpoint whose algorithm's state is a `state_kind`. CheckpointError: it cannot be used, and why."""
    try:
        return from_bytes(path.read_bytes(), state_kind)
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error.strerror}") from None


def to_bytes(checkpoint: Checkpoint) -> bytes:
    """The file's content."""
    state = checkpoint.state
    encoded = encode(state.algorithm, state.untested, state.moments)
    algorithm, untested, moments = encoded.values
    body = {
        "version": VERSION,
        "neuroevo": neuroevo.__version__,
        "origin": checkpoint.origin,
        "lengths": checkpoint.lengths,
        "generation": state.generation,
        "cutoff": state.cutoff,
        "steps": state.steps,
        "seconds": state.seconds,
        "algorithm": algorithm,
        "untested": untested,
        "moments": moments,
        "genomes": encoded.genomes,
        "centers": encoded.centers,
        "arrays": len(encoded.arrays),
    }
    rest = io.BytesIO()
    rest.write(json.dumps(body, allow_nan=False).encode() + b"\n")
    for array in encoded.arrays:
        np.lib.format.write_array(rest, np.ascontiguousarray(array), allow_pickle=False)
    content = rest.getvalue()
    head = {"format": FORMAT, "version": VERSION, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return json.dumps(head).encode() + b"\n" + content


def from_bytes(data: bytes, state_kind: type) -> Checkpoint:
    """The checkpoint in a file's content. CheckpointError says what is wrong with it."""
    first, newline, content = data.partition(b"\n")
    try:
        head = json.loads(first)
        if not newline or head["format"] != FORMAT:
            raise ValueError
        version, size, checksum = head["version"], head["bytes"], head["sha256"]
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"is not a {FORMAT}: its first line does not say so") from None
    if version not in _READS:
        known = f"{', '.join(map(str, _READS[:-1]))} and {_READS[-1]}"
        raise CheckpointError(f"has version {version} of the format, this neuroevo reads versions {known}")
    if len(content) != size:
        raise CheckpointError(f"is damaged: {len(content):,} bytes after the first line, expected {size:,}")
    if hashlib.sha256(content).hexdigest() != checksum:
        raise CheckpointError("is damaged: its content does not match its SHA-256 sum")
    # From here on the file is as it was written, so what is wrong is who wrote it.
    rest = io.BytesIO(content)
    try:
        body = json.loads(rest.readline())
        if not isinstance(body, dict):
            raise ValueError(f"its second line is {str(body)[:80]}, expected an object")
        if body.get("version", version) != version:  # the sum is not of the first line; 1 and 2 say it only there
            raise ValueError(f"its first line says version {version}, its second one {body['version']}")
        arrays = [np.lib.format.read_array(rest, allow_pickle=False) for _ in range(body["arrays"])]
        values = [body["algorithm"], body.get("untested", []), body.get("moments")]
        kinds = state_kind, tuple[Untested, ...], Moments
        encoded = Encoded(values, body["genomes"], arrays, body.get("centers", {}))
        algorithm, untested, moments = decode(encoded, *kinds)
        state = TrainState(
            algorithm=algorithm,
            generation=body["generation"],
            cutoff=body["cutoff"],
            steps=body["steps"],
            seconds=body["seconds"],
            untested=untested,
            moments=moments,
        )
        return Checkpoint(state, body["origin"], body["lengths"])
    except (ValueError, KeyError, TypeError, TokenError) as error:  # the last: an array's header is no Python
        raise CheckpointError(f"does not fit this run: {error}") from None
