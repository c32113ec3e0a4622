"""info.json of a run: what started it, when it was resumed, and on which machine; nothing depends on it."""

from __future__ import annotations

import json
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
        info = parse_json(read_regular(folder / INFO))
    except (OSError, ValueError):
        return {}
    return info if isinstance(info, dict) and isinstance(info.get("resumed"), list) else {}


def write_info(folder: Directory, info: Mapping[str, Any]) -> None:
    """Writes info.json.

    Args:
        folder: The run's folder.
        info: Its content, as JSON values.

    Raises:
        OSError: It cannot be written.
    """
    folder.write(INFO, (json.dumps(info, indent=2) + "\n").encode())
