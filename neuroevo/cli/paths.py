"""Parse and complete command line arguments: folders, presets, keys and columns."""

from __future__ import annotations

from pathlib import Path

import typer


def folder(text: str) -> Path:
    """Parse an option that names a folder.

    Args:
        text: The option's value.

    Returns:
        The folder's path.

    Raises:
        typer.BadParameter: The value is empty, which Path would interpret as the current folder.
    """
    if not text:
        raise typer.BadParameter("it is empty, expected the path of a folder")
    return Path(text)


def presets(incomplete: str) -> list[str]:
    """Complete a preset's name; if none matches, the shell completes file names.

    Args:
        incomplete: The word typed so far.
    """
    from neuroevo.config import sources

    return [name for name in sources.presets() if name.startswith(incomplete)]


def keys(incomplete: str) -> list[str]:
    """Complete a configuration key, including the equals sign.

    Args:
        incomplete: The word typed so far.
    """
    from neuroevo.config.load import keys_of_sections

    names = (f"{section}.{key}=" for section, keys in keys_of_sections().items() for key in keys)
    return [name for name in names if name.startswith(incomplete)]


def columns(incomplete: str) -> list[str]:
    """Complete a column of metrics.csv that exists in every run.

    Args:
        incomplete: The word typed so far.
    """
    from neuroevo.training.record import COLUMNS

    return [name for name in COLUMNS if name.startswith(incomplete)]
