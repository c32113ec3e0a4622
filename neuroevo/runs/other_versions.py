"""Refuses the folder of a run that another version of neuroevo made, in one line that says what is different."""

from __future__ import annotations

from pathlib import Path

from neuroevo.config.load import unknown_keys
from neuroevo.core.errors import UserError
from neuroevo.core.user_module import only
from neuroevo.runs.checkpoint import VERSION, version_of
from neuroevo.runs.paths import CHECKPOINTS, CONFIG
from neuroevo.system.reading import parse_toml, read_text


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
    """Sections and keys of a configuration file that this version lacks; none of a file that is not TOML.

    Of an algorithm that is not the package's none either: nobody has said yet that it may be imported.
    """
    try:
        with only(()):
            return unknown_keys(parse_toml(read_text(path)))
    except (OSError, ValueError):
        return []
