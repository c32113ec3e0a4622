"""Storage of run metadata in run.db: configuration, origin, software versions and reference batch."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.config.trust import Recorded
from neuroevo.core.errors import UserError
from neuroevo.rollout.reference_batch import COUNT, draw_reference_batch, make_pool
from neuroevo.runs.database import Database
from neuroevo.runs.values import checksum
from neuroevo.system.reading import parse_json

_COLUMNS = ("token", "config", "origin", "info", "reference")
FORKED = "forked_from"  # a key of About.info


@dataclass(frozen=True)
class About:
    """Metadata of a run.

    Attributes:
        config: The configuration, as TOML.
        origin: Everything that results depend on, as JSON values.
        info: Command, versions, commit and machine; those of resumed sessions under "resumed".
        reference: Row number of the array with the reference batch; None if the network needs none.
        token: Random identifier of the run, drawn when the run began.
    """

    config: str
    origin: Mapping[str, Any]
    info: Mapping[str, Any]
    reference: int | None = None
    token: str = ""

    @property
    def recorded(self) -> Recorded:
        """The recorded configuration and user modules, to load the configuration from."""
        modules = self.info.get("own_modules")
        known = modules.items() if isinstance(modules, dict) else ()
        return Recorded(self.config, {name: str(each.get("path")) for name, each in known if isinstance(each, dict)})


def write_about(database: Database, about: About) -> None:
    """Store or replace a run's metadata, in a transaction."""
    row: dict[str, Any] = {
        "token": about.token or secrets.token_hex(16),
        "config": about.config,
        "origin": json.dumps(about.origin, allow_nan=False),
        "info": json.dumps(_plain(about.info), allow_nan=False),
        "reference": about.reference,
    }
    database.insert("run", {"id": 1, **row, "checksum": checksum(*row.values())}, replace=True)


def read_about(database: Database) -> About:
    """Read a run's metadata. DamagedError: the stored data is invalid or was changed."""
    row = database.row(
        tuple[str, str, str, str, int | None, int], f"SELECT {', '.join(_COLUMNS)}, checksum FROM run WHERE id = 1"
    )
    if row is None or checksum(*row[:-1]) != row[-1]:
        raise database.damaged("its table run is empty or has been changed")
    token, config, origin, info, reference, _ = row
    sessions = database.rows(tuple[int, int, str], "SELECT id, generation, info FROM sessions ORDER BY id")
    try:
        loaded, known = parse_json(origin), parse_json(info)
        resumed = [{**parse_json(each), "generation": generation} for _, generation, each in sessions[1:]]
    except (TypeError, ValueError) as error:
        raise database.damaged(f"its table run or sessions is invalid: {error}") from None
    if not isinstance(loaded, dict) or not isinstance(loaded.get("env"), dict):
        raise database.damaged("the value of origin in its table run is invalid")
    if not isinstance(known, dict) or not isinstance(known.get("versions"), dict):
        raise database.damaged("the value of info in its table run is invalid")
    return About(config, loaded, {**known, "resumed": resumed}, reference, token)


def read_reference(database: Database, config: Config) -> np.ndarray | None:
    """Read the reference batch of a run.

    Args:
        database: The run's database.
        config: The run's configuration.

    Returns:
        Observations, uint8 or float32 [128, ...]; None if the network needs no reference batch.

    Raises:
        UserError: The batch is missing or damaged, or does not consist of the environment's observations.
    """
    if not config.needs_reference:
        return None
    number = read_about(database).reference
    if number is None:
        raise database.damaged("it has no reference batch")
    batch, pool = database.array(number), make_pool(config.environment.spec)
    dtype = np.dtype(np.uint8 if pool.observation_dtype == np.uint8 else np.float32)
    shape = (COUNT, *pool.observation_shape)
    if batch.dtype != dtype or batch.shape != shape:
        raise UserError(
            f"the reference batch in {database.file} is {batch.dtype} {list(batch.shape)}, "
            f"expected {dtype} {list(shape)}"
        )
    return batch


def draw_reference(config: Config) -> np.ndarray:
    """Draw the reference batch of a run that does not start from another run, [128, ...]."""
    return draw_reference_batch(config.environment.spec, config.training.seed)


def _plain(value: Any) -> Any:
    """Convert infinite numbers in a value, such as a joint limit, to text: JSON does not support them."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
