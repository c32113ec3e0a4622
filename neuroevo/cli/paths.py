"""Parse paths on the command line, and complete names."""

from __future__ import annotations

from pathlib import Path

import typer


def folder(text: str) -> Path:
    """Parses an option that names a folder.

    Args:
        text: The option's value.

    Returns:
        The folder's path.

    Raises:
        typer.BadParameter: The value is empty, which Path would take for the current folder.
    """
    if not text:
        raise typer.BadParameter("it is empty, expected the path of a folder")
    return Path(text)


def presets(incomplete: str) -> list[str]:
    """Completes a preset's name; where there is none, the shell goes on with names of files.

    Args:
        incomplete: How the word begins.
    """
    from neuroevo.config import sources

    return [name for name in sources.presets() if name.startswith(incomplete)]
