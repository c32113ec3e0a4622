"""Trust in external code and models referenced by a run's configuration; docs/security.md describes the threats.

A run's folder may come from an untrusted source. External code and models that it references are imported and parsed
only if the user allows it, if the user's own configuration references them too, or if this machine started the run.
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
    """Configuration recorded in a run's database.

    Attributes:
        text: The configuration, as TOML.
        places: The files of the user's modules when the run started, by module name.
    """

    text: str
    places: Mapping[str, str] = field(default_factory=dict)


def is_of_run(path: Path | str) -> bool:
    """Return whether a file is the configuration in a run's folder, which may not be the user's own.

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
    """Read a run's configuration and check it with allowed().

    Args:
        path: A run's config.toml.
        recorded: The configuration in the run's database, used instead of the file.
        overrides: Changes to the configuration by the user.
        trust: As for allowed().
        like: As for allowed().
        trains: As for allowed().

    Raises:
        NotTrustedError: The configuration references external code or models that are not trusted.
        UserError: The file cannot be read, or an override is malformed.
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
    """Check that external code and models of a run are trusted, and make the run's copies of modules importable.

    Args:
        path: The run's config.toml, or a genome file.
        tables: The run's configuration with the user's changes.
        changed: The keys that the user changed, such as "network.name".
        places: The files of the user's modules when the run started. A module found at this path, perhaps edited, is
            preferred to the run's copy; a module found elsewhere is not.
        trust: Whether the user trusts the source of the run.
        like: A configuration of the user; its external code and models are trusted.
        trains: Whether the run is started or resumed, not only inspected.

    Raises:
        NotTrustedError: The run references external code or models that are not trusted.
    """
    keep({})
    named = [
        each
        for each in named_code(tables)
        if (trains or not each.when_training) and not any(f"{each.key}.".startswith(f"{key}.") for key in changed)
    ]
    # A genome file in the folder of the user's run may be a download.
    if trust or (named and path.name == CONFIG and is_own(path.parent / DATABASE)):
        keep(_as_kept(path.parent, named, places))
        return
    theirs = {each.does for each in ([] if like is None else named_code(like.tables()))}
    strange = [each for each in named if each.does not in theirs]
    if strange:
        raise NotTrustedError(_refusal(path.parent if path.name == CONFIG else path, strange))


def kept_path(folder: Path, module: str) -> Path:
    """Return the path of a run's copy of a module.

    Args:
        folder: The run's folder.
        module: The module's name.
    """
    return folder / KEPT / Path(*module.split(".")).with_suffix(".py")


def _as_kept(folder: Path, named: Sequence[NamedCode], places: Mapping[str, str]) -> dict[str, KeptModule]:
    """Return the run's copies of the named modules, as far as they exist in own/."""
    found = {}
    for module in {each.module for each in named if each.module is not None}:
        copy = kept_path(folder, module)
        if copy.is_file():
            elsewhere = located(module) not in (None, Path(places.get(module, "")))
            found[module] = KeptModule(str(copy.absolute()), copy.read_bytes(), first=elsewhere)
    return found


def _refusal(run: Path, strange: Sequence[NamedCode]) -> str:
    what = "; ".join(f"{each.key} {each.does}" for each in strange)
    return (
        f"the run in {run} references external code: {what}. It can execute arbitrary code, and the run was not "
        "begun on this machine. If you trust everyone who created or modified the run, pass --trust (in Python: "
        "trust=True); see docs/security.md"
    )
