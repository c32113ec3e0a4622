"""Paths on the command line."""

from __future__ import annotations

from pathlib import Path

import typer


def folder(text: str) -> Path:
    """A folder's path, for options. BadParameter: it is empty, which Path would take for the current folder."""
    if not text:
        raise typer.BadParameter("it is empty, expected the path of a folder")
    return Path(text)
