"""Refuses the folder of a run that another version of neuroevo made, in one line that says what is different."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from neuroevo.algorithms.registry import find_algorithm
from neuroevo.config.schema import SECTIONS
from neuroevo.core.errors import UserError
from neuroevo.runs.checkpoint import VERSION, version_of
from neuroevo.runs.paths import CHECKPOINTS, CONFIG
from neuroevo.system.toml import tomllib


def refuse_other_versions(folder: Path) -> None:
    """Checks that this version of neuroevo can read a run: the format of its checkpoints and its configuration's keys.

    A folder in which only some checkpoints have another version is not refused, since the others can be used. Nothing
    else that may be wrong with the files is looked at.

    Args:
        folder: The run's folder.

    Raises:
        UserError: No checkpoint has this version's format, or the configuration has keys that this version lacks.
    """
    found = [version_of(path) for path in (folder / CHECKPOINTS).glob("*.ckpt")]
    versions = sorted({version for version in found if version is not None})
    if versions and VERSION not in versions:
        theirs = ", ".join(map(str, versions))
        raise UserError(
            f"another version of neuroevo made the run in {folder}: its checkpoints have version {theirs} of the "
            f"format, this neuroevo reads version {VERSION}"
        )
    unknown = _unknown_keys(folder / CONFIG)
    if unknown:
        raise UserError(
            f"another version of neuroevo made the run in {folder}, or its {CONFIG} was edited: it has "
            f"{', '.join(unknown)}, which this neuroevo does not know"
        )


def _unknown_keys(path: Path) -> list[str]:
    """Sections and keys of a configuration file that this version lacks; none of a file that is not TOML."""
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    unknown = [section for section in tables if section not in SECTIONS]
    for section, table in tables.items():
        known = _keys(section, table)
        if known is not None:
            unknown += [f"{section}.{key}" for key in table if key not in known]
    return unknown


def _keys(section: str, table: Any) -> set[str] | None:
    """The keys that a section may have; None if they are not known."""
    if not isinstance(table, dict):
        return None
    kind: Any = SECTIONS.get(section)
    if section == "algorithm":
        try:
            kind = find_algorithm(table.get("name", "ga"))
        except UserError:
            return None
    if not is_dataclass(kind):
        return None
    return {each.name for each in fields(kind)} | ({"name"} if section == "algorithm" else set())
