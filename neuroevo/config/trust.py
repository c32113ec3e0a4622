"""Whether what a run's configuration names may be imported and parsed. docs/security.md says what that protects from.

A run's folder may come from anybody. External code and models that it names are touched only where the user says so,
where the user's own configuration names them too, or where the run was begun on this machine.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from neuroevo.config.named import named_code
from neuroevo.config.own_runs import is_own
from neuroevo.config.schema import Config
from neuroevo.config.sources import parse, text_of
from neuroevo.core.errors import NotTrustedError
from neuroevo.core.named_code import NamedCode
from neuroevo.core.user_module import KEPT, KeptModule, keep, located

CONFIG, DATABASE = "config.toml", "run.db"


@dataclass(frozen=True)
class Recorded:
    """What a run has recorded of its configuration.

    Attributes:
        text: The configuration, as TOML.
        places: The files of the user's modules when the run began, by the modules' names.
    """

    text: str
    places: Mapping[str, str] = field(default_factory=dict)


def is_of_run(path: Path | str) -> bool:
    """Return whether a file is the configuration in a run's folder, which the user need not have written.

    Args:
        path: The file, or a preset's name.
    """
    return Path(path).name == CONFIG and any(os.path.exists(Path(path).parent / name) for name in (DATABASE, KEPT))


def require_trust(
    path: Path,
    recorded: Recorded | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    trust: bool = False,
    like: Config | None = None,
    trains: bool = False,
) -> None:
    """Apply allowed() to a file that is not read yet.

    Args:
        path: A run's config.toml.
        recorded: What to read in place of the file.
        overrides: Changes to it by the user.
        trust: As allowed() takes it.
        like: Likewise.
        trains: Likewise.

    Raises:
        NotTrustedError: It is not allowed.
        UserError: The file cannot be read, or overrides are wrong.
    """
    recorded = recorded or Recorded(text_of(path))
    given, changed = parse(recorded.text, path, overrides)
    allowed(path, given.tables, changed, recorded.places, trust=trust, like=like, trains=trains)


def allowed(
    path: Path,
    tables: Mapping[str, Any],
    changed: Collection[str] = (),
    places: Mapping[str, str] = MappingProxyType({}),
    *,
    trust: bool = False,
    like: Config | None = None,
    trains: bool = False,
) -> None:
    """Check that what a run names may be touched; from then on its modules are found as it has kept them.

    Args:
        path: The run's config.toml.
        tables: Its configuration with the user's changes.
        changed: The keys that the user changed, such as "network.name".
        places: The files of the user's modules when the run began. A module that is found there, edited perhaps, takes
            precedence over the one that the run has kept; one that is found elsewhere does not.
        trust: Whether the user trusts whoever made the run.
        like: A configuration of the user's own: what that names, too, needs no trust.
        trains: Whether the run is to continue, not only to be looked at.

    Raises:
        NotTrustedError: It may not.
    """
    keep({})
    named = [
        each
        for each in named_code(tables)
        if (trains or not each.when_training) and not any(f"{each.key}.".startswith(f"{key}.") for key in changed)
    ]
    if trust or (named and is_own(path.parent / DATABASE)):
        keep(_as_kept(path.parent, named, places))
        return
    theirs = {each.does for each in ([] if like is None else named_code(like.tables()))}
    strange = [each for each in named if each.does not in theirs]
    if strange:
        raise NotTrustedError(_refusal(path.parent, strange))


def kept_path(folder: Path, module: str) -> Path:
    """Return where a run keeps a module's source.

    Args:
        folder: The run's.
        module: The module's name.
    """
    return folder / KEPT / Path(*module.split(".")).with_suffix(".py")


def _as_kept(folder: Path, named: Sequence[NamedCode], places: Mapping[str, str]) -> dict[str, KeptModule]:
    """Return the modules that own/ has, whatever they are."""
    found = {}
    for module in {each.module for each in named if each.module is not None}:
        copy = kept_path(folder, module)
        if copy.is_file():
            elsewhere = located(module) not in (None, Path(places.get(module, "")))
            found[module] = KeptModule(str(copy.absolute()), copy.read_bytes(), first=elsewhere)
    return found


def _refusal(folder: Path, strange: Sequence[NamedCode]) -> str:
    what = "; ".join(f"{each.key} {each.does}" for each in strange)
    return (
        f"the run in {folder} references external code: {what}. That can run any code, and the run was not begun on "
        "this machine. If you trust whoever made the run and changed it, say so with --trust (in Python: trust=True); "
        "see docs/security.md"
    )
