"""The reference batch in the folder of a run: reference.npy, whose SHA-256 sum is in info.json."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.rollout.reference_batch import COUNT, make_pool
from neuroevo.runs.npy import read_array
from neuroevo.runs.paths import INFO, REFERENCE
from neuroevo.system.reading import parse_json, read_regular

_SUM = "reference_sha256"  # in info.json


def content(batch: np.ndarray) -> bytes:
    """Return what the file of a batch, observations [128, ...], holds."""
    file = io.BytesIO()
    np.save(file, batch, allow_pickle=False)
    return file.getvalue()


def checksum(batch: np.ndarray | None) -> dict[str, str]:
    """What a run's info.json says of its batch: nothing where it has none."""
    return {} if batch is None else {_SUM: _sum(batch)}


def load(folder: Path, config: Config) -> np.ndarray | None:
    """The batch in the folder of a configuration's run.

    Returns:
        Observations, uint8 or float32 [128, ...]; None where the network needs none.

    Raises:
        UserError: It is missing or damaged, it is not of the environment's observations, or info.json has another's
            sum.
    """
    if not config.network.needs_reference:
        return None
    pool = make_pool(config.environment.spec)
    dtype = np.dtype(np.uint8 if pool.observation_dtype == np.uint8 else np.float32)
    path, shape = folder / REFERENCE, (COUNT, *pool.observation_shape)
    expected = f"expected the reference batch of {config.network}: {dtype} {list(shape)}"
    try:
        file = io.BytesIO(read_regular(path))
        batch = read_array(file)
        if file.read(1):
            raise ValueError("something follows the array")
    except FileNotFoundError:
        raise UserError(f"{path} is missing; {expected}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; {expected}") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); {expected}") from None
    if batch.dtype != dtype or batch.shape != shape:
        raise UserError(f"{path} holds {batch.dtype} {list(batch.shape)}; {expected}")
    try:
        noted = parse_json(read_regular(folder / INFO), nan=True)[_SUM]
    except (OSError, ValueError, LookupError, TypeError):
        return batch  # a run goes on without its info.json
    if noted != _sum(batch):
        raise UserError(
            f"{path} is another batch than the run began with: its SHA-256 sum is {_sum(batch)}, not {noted}"
        )
    return batch


def _sum(batch: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(batch).tobytes()).hexdigest()
