"""The configurations that come with neuroevo: the TOML files of experiments/, by name.

An installed package has copies of them in its folder `_presets`; in a checkout that is a link to experiments/.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).with_name("_presets")


def presets() -> dict[str, Path]:
    """The file of each preset by name, sorted."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def description(path: Path) -> str:
    """What a preset is for: the first line of its file, a comment."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()
