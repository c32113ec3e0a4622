"""info.json of a run: what started it, when it was resumed, and on which machine; nothing depends on it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuroevo.runs.paths import INFO
from neuroevo.system.directory import Directory
from neuroevo.system.reading import parse_json, read_regular


def read_info(folder: Path) -> dict[str, Any]:
    """Reads info.json.

    Args:
        folder: The run's folder.

    Returns:
        Its content; nothing if the file is missing or damaged.
    """
    try:
        info = parse_json(read_regular(folder / INFO), nan=True)  # earlier versions wrote Infinity
    except (OSError, ValueError):
        return {}
    return info if isinstance(info, dict) and isinstance(info.get("resumed"), list) else {}


def write_info(folder: Directory, info: Mapping[str, Any]) -> None:
    """Writes info.json.

    Args:
        folder: The run's folder.
        info: Its content, as JSON values; infinite numbers become the text "inf" or "-inf".

    Raises:
        OSError: It cannot be written.
    """
    folder.write(INFO, (json.dumps(_plain(info), indent=2, allow_nan=False) + "\n").encode())


def _plain(value: Any) -> Any:
    """The value with infinite numbers, such as a bound of a robot's, as text: JSON has none."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
