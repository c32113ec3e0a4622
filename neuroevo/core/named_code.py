"""External code and models that a configuration references: modules that are imported, files that MuJoCo parses.

References are determined from the configuration's text, before anything is imported or opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PACKAGE = "neuroevo"


@dataclass(frozen=True)
class NamedCode:
    """One reference to external code or to a model.

    Attributes:
        key: The key of the configuration that references it, such as "algorithm.name".
        does: The key's effect, as the end of a sentence that starts with the key: "imports the module mine". References
            with the same effect are the same reference.
        module: The referenced module; None for a file.
        file: Absolute path of the referenced file; None for a module.
        when_training: Whether the reference is used only in training, and not when a run is inspected.
    """

    key: str
    does: str
    module: str | None = None
    file: Path | None = None
    when_training: bool = False


def named_module(key: str, module: str) -> list[NamedCode]:
    """Return the reference to a module as a list.

    Args:
        key: The key that references it.
        module: The module's name.

    Returns:
        The reference; an empty list for modules of this package.
    """
    if module.partition(".")[0] == _PACKAGE:
        return []
    return [NamedCode(key, f"imports the module {module}", module=module)]


def named_model(key: str, path: str) -> list[NamedCode]:
    """Return the reference to a robot model, which MuJoCo parses together with its included files, as a list.

    Args:
        key: The key that references it.
        path: The file's path.
    """
    try:
        file = Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # unknown user in ~user, or an invalid path
        file = Path(path)
    return [NamedCode(key, f"has MuJoCo read {file}", file=file)]
