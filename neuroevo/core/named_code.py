"""What a configuration names beside the package's own: modules that reading it imports, files that others' code parses.

It is found in the text alone, before anything of it is imported or opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PACKAGE = "neuroevo"


@dataclass(frozen=True)
class NamedCode:
    """One such thing.

    Attributes:
        key: The key of the configuration that names it, such as "algorithm.name".
        does: What happens, as the end of a sentence that begins with the key: "imports the module mine". Two are the
            same thing where this is equal.
        module: The module, if it is one.
        file: The file, if it is one, absolute.
        when_training: Whether only training does it, not looking at a run.
    """

    key: str
    does: str
    module: str | None = None
    file: Path | None = None
    when_training: bool = False


def named_module(key: str, module: str) -> list[NamedCode]:
    """A module that a key names.

    Args:
        key: The key.
        module: The module's name.

    Returns:
        It; nothing if it is the package's own.
    """
    if module.partition(".")[0] == _PACKAGE:
        return []
    return [NamedCode(key, f"imports the module {module}", module=module)]


def named_model(key: str, path: str) -> list[NamedCode]:
    """A model of a robot that a key names, which MuJoCo parses, with the files that it includes.

    Args:
        key: The key.
        path: The file's path.
    """
    try:
        file = Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # no such user's home, no file's name at all
        file = Path(path)
    return [NamedCode(key, f"has MuJoCo read {file}", file=file)]
