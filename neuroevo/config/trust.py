"""Whether what a run's configuration names may be imported and parsed. docs/security.md says what that protects from.

A run's folder may come from anybody. What it names beside the package's own code is touched only where the user says
so, where the user's own configuration names it too, or where this user's neuroevo has made the run.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroevo.config.named import named_code
from neuroevo.config.schema import Config
from neuroevo.config.signature import SIGNATURE, Unsigned, check_signature, kept_path
from neuroevo.config.sources import parse, text_of
from neuroevo.core.errors import NotTrustedError
from neuroevo.core.named_code import NamedCode
from neuroevo.core.user_module import KEPT, KeptModule, keep

CONFIG = "config.toml"
_BESIDE = (SIGNATURE, KEPT, "run.db")  # what a run's folder has


def is_of_run(path: Path | str) -> bool:
    """Whether a file is the configuration in a run's folder, which the user need not have written.

    Args:
        path: The file, or a preset's name.
    """
    return Path(path).name == CONFIG and any(os.path.exists(Path(path).parent / name) for name in _BESIDE)


def require_trust(
    path: Path,
    text: str | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    trust: bool = False,
    like: Config | None = None,
    trains: bool = False,
) -> bool:
    """As allowed(), of a file that is not read yet.

    Args:
        path: A run's config.toml.
        text: What to read in place of the file's contents.
        overrides: Changes to it by the user.
        trust: As allowed() takes it.
        like: Likewise.
        trains: Likewise.

    Returns:
        What allowed() returns.

    Raises:
        NotTrustedError: It is not allowed.
        UserError: The file cannot be read, or overrides are wrong.
    """
    text = text_of(path) if text is None else text
    given, changed = parse(text, path, overrides)
    return allowed(path, text, given.tables, changed, trust=trust, like=like, trains=trains)


def allowed(
    path: Path,
    text: str,
    tables: Mapping[str, Any],
    changed: Collection[str] = (),
    *,
    trust: bool = False,
    like: Config | None = None,
    trains: bool = False,
) -> bool:
    """Checks that what a run names may be touched; from then on its modules are found as it has kept them.

    Args:
        path: The run's config.toml.
        text: What that holds.
        tables: The same with the user's changes.
        changed: The keys that the user changed, such as "network.name".
        trust: Whether the user trusts whoever made it.
        like: A configuration of the user's own: what that names, too, needs no trust.
        trains: Whether the run is to go on, not only to be looked at.

    Returns:
        Whether all that it names is trusted for its own sake, not because `like` names it too.

    Raises:
        NotTrustedError: It may not.
    """
    keep({})
    named = [
        each
        for each in named_code(tables)
        if (trains or not each.when_training) and not any(f"{each.key}.".startswith(f"{key}.") for key in changed)
    ]
    if not named:
        return True
    if trust:
        keep(_as_kept(path.parent, named))
        return True
    theirs = {each.does for each in ([] if like is None else named_code(like.tables()))}
    try:
        keep(check_signature(path.parent, text, named))
    except Unsigned as reason:
        strange = [each for each in named if each.does not in theirs]
        if strange:
            raise NotTrustedError(_refusal(path.parent, strange, str(reason))) from None
        return False
    return True


def _as_kept(folder: Path, named: Sequence[NamedCode]) -> dict[str, KeptModule]:
    """The modules that own/ has, whatever they are."""
    found = {}
    for module in {each.module for each in named if each.module is not None}:
        copy = kept_path(folder, module)
        if copy.is_file():
            found[module] = KeptModule(str(copy.absolute()), copy.read_bytes())
    return found


def _refusal(folder: Path, strange: Sequence[NamedCode], reason: str) -> str:
    what = "; ".join(f"{each.key} {each.does}" for each in strange)
    return (
        f"the run in {folder} names what is not neuroevo's own: {what}. That can run any code, and {reason}. "
        "If you trust whoever made the run and changed it, say so with --trust (in Python: trust=True); "
        "docs/security.md tells what that means"
    )
