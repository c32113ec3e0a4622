"""A file with the section [sweep]: read and checked, every problem reported at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean, problems_in, problems_of, refuse
from neuroevo.system.files import nearest_file
from neuroevo.system.reading import parse_toml, read_text

_Settings = TypeVar("_Settings")


def read_section(path: Path, name: str, kind: type[_Settings]) -> _Settings:
    """Reads a file's section.

    Args:
        path: The file.
        name: The section's, the only one that the file may have.
        kind: The class of its settings.

    Returns:
        The settings.

    Raises:
        ConfigError: The file has problems; all of them.
        UserError: There is no such file, or it cannot be read.
    """
    try:
        tables = parse_toml(read_text(path))
    except FileNotFoundError:
        raise UserError(f"there is no {name} file {path}{nearest_file(path, ('.toml',))}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except ValueError as error:
        raise UserError(f"{path} is not valid TOML: {error}") from None
    problems = [
        Problem(other, f"there is no such section; expected [{name}] alone") for other in tables if other != name
    ]
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError([*problems, Problem(name, f"expected a section [{name}]", table)], str(path))
    keys = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # settings are dataclasses
    for key in (key for key in table if key not in keys):
        hint = did_you_mean(key, keys)
        problems.append(Problem(f"{name}.{key}", f"there is no such key{hint} (keys: {', '.join(keys)})", table[key]))
    try:
        chosen = kind(**{key: value for key, value in table.items() if key in keys})
    except ValidationError as error:
        raise ConfigError([*problems, *problems_of(name, error)], str(path)) from None
    refuse(problems, str(path))
    return chosen


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Adds what a UserError says to `problems`, once."""
    try:
        yield
    except UserError as error:
        problems += [problem for problem in problems_in(error) if problem not in problems]


def beside(name: str, folder: Path) -> Path | str:
    """Finds a configuration that a file names.

    Args:
        name: A file, looked for beside that file first, or a preset.
        folder: That of the file that names it.

    Returns:
        What load_config takes.
    """
    return folder / name if os.path.isfile(folder / name) else name  # Path.is_file() raises where a name is too long


def folder_of(path: Path, chosen: str | None, instead: Path | None) -> Path:
    """Where the runs of a file go.

    Args:
        path: The file.
        chosen: What it says; None: nothing.
        instead: A folder to use instead; None: none.

    Returns:
        The folder: by default runs/NAME, after the file.
    """
    return instead or Path(chosen or Path("runs") / path.stem)


def values_of(section: object) -> dict[str, Any]:
    """A section's settings by key, as they are."""
    return {field.name: getattr(section, field.name) for field in fields(section)}  # type: ignore[arg-type]
