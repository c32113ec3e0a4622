"""signature.json in a run's folder: shows that this user's neuroevo made the run, and with which modules and models.

It has the sums of config.toml, of the modules' source in own/ and of a robot's model, the places of modules, and the
code (HMAC) that the user's key makes of all that. A run that names nothing beside the package's own code has none. What
checkpoints hold is not in it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neuroevo.core.named_code import NamedCode
from neuroevo.core.user_module import KEPT, KeptModule, located
from neuroevo.system.directory import Directory
from neuroevo.system.user_key import NoKeyError, is_signed, sign

log = logging.getLogger("neuroevo")
SIGNATURE = "signature.json"
_PURPOSE = "run"
_MOST_BYTES = 1 << 26  # of a file that is read here: far more than signatures, sources and models have


class Unsigned(Exception):  # noqa: N818 (no error: runs that others have made are so)
    """Nothing shows that this user's neuroevo has made a run; the message says why, as the end of a sentence."""


@dataclass(frozen=True)
class Signed:
    """What is signed.

    Attributes:
        config: SHA-256 sums of what config.toml may hold, in hexadecimal digits, as all sums here: two while a run that
            is resumed gets another.
        modules: Of each module its name, the path of its file, the sum of that, and whether own/ has it.
        files: Sums of files by their paths.
    """

    config: list[str]
    modules: list[dict[str, Any]]
    files: dict[str, str]

    def to_bytes(self) -> bytes:
        """The same bytes for the same content."""
        return json.dumps(asdict(self), sort_keys=True).encode()


def kept_path(folder: Path, module: str) -> Path:
    """Where a run keeps a module's source.

    Args:
        folder: The run's.
        module: The module's name.
    """
    return folder / KEPT / Path(*module.split(".")).with_suffix(".py")


def write_signature(folder: Directory, config: Sequence[str], named: Iterable[NamedCode]) -> None:
    """Signs a run whose folder has the modules' source already.

    Args:
        folder: The run's.
        config: What config.toml may hold.
        named: What the run names.

    Raises:
        NoKeyError: There is no key to sign with.
        OSError: The signature cannot be written, or what is signed cannot be read.
    """
    named = list(named)
    modules = {each.module: _module(folder.path, each.module) for each in named if each.module is not None}
    files = {str(each.file): _sum(each.file.read_bytes()) for each in named if each.file is not None}
    signed = Signed([_sum(text.encode()) for text in dict.fromkeys(config)], list(modules.values()), files)
    code = sign(_PURPOSE, signed.to_bytes())
    folder.write(SIGNATURE, (json.dumps({**asdict(signed), "hmac": code}, indent=1) + "\n").encode())


def check_signature(folder: Path, config: str, named: Iterable[NamedCode]) -> dict[str, KeptModule]:
    """Checks that this user's neuroevo has made a run, and that nothing that was signed has changed.

    Args:
        folder: The run's.
        config: What config.toml holds.
        named: What the run names.

    Returns:
        Its modules as own/ has them, by name.

    Raises:
        Unsigned: It has not, or something has.
    """
    signed = _read(folder)
    if _sum(config.encode()) not in signed.config:
        raise Unsigned("its config.toml has changed since it was made here")
    modules = {module["name"]: module for module in signed.modules}
    kept: dict[str, KeptModule] = {}
    for each in named:
        if each.module is not None:
            if each.module not in modules:
                raise Unsigned(f"its signature is not of the module {each.module}")
            kept |= _checked_module(folder, modules[each.module])
        elif each.file is not None and os.path.exists(each.file):  # one that is gone is nothing to parse
            found = _contents(each.file)
            if found is None or signed.files.get(str(each.file)) != _sum(found):
                raise Unsigned(f"{each.file} has changed since it was made here")
    return kept


def _module(folder: Path, name: str) -> dict[str, Any]:
    """What is signed of a module."""
    copy, place = kept_path(folder, name), located(name)
    source = copy if copy.is_file() else place
    found = None if source is None else _sum(source.read_bytes())
    return {"name": name, "path": None if place is None else str(place), "sha256": found, "kept": source == copy}


def _checked_module(folder: Path, module: Mapping[str, Any]) -> dict[str, KeptModule]:
    """The module as own/ has it; nothing where it is not kept. Unsigned: it, or what would be imported, is another."""
    name, copy = module["name"], kept_path(folder, module["name"])
    source = _contents(copy) if module["kept"] else None
    if module["kept"] and (source is None or _sum(source) != module["sha256"]):
        raise Unsigned(f"{copy} has changed since it was made here")
    place = located(name)
    elsewhere = place is not None and str(place) != module["path"]
    here = _contents(place) if place is not None and elsewhere else None
    differs = elsewhere and (here is None or _sum(here) != module["sha256"])
    if source is not None:
        if differs:
            log.warning(
                "neuroevo: %s is taken, since %s is another module %s than the run was made with", copy, place, name
            )
        return {name: KeptModule(str(copy.absolute()), source, first=elsewhere)}
    if differs or (elsewhere and "." in name):  # of a package, whose other files would be imported with it
        raise Unsigned(f"the module {name} is {place} here, another file than {module['path']}, which it was made with")
    return {}


def _read(folder: Path) -> Signed:
    """The signature. Unsigned: there is none of this user's."""
    data = _contents(folder / SIGNATURE)
    if data is None:
        raise Unsigned(f"nothing shows that it was made here (it has no {SIGNATURE})")
    try:
        given = json.loads(data)
        signed = Signed(given["config"], given["modules"], given["files"])
        _check_types(signed)
        if not is_signed(_PURPOSE, signed.to_bytes(), given["hmac"]):
            raise Unsigned(f"its {SIGNATURE} is not by your key on this machine, or has changed")
    except NoKeyError as error:
        raise Unsigned(f"whether it was made here cannot be known: {error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Unsigned(f"its {SIGNATURE} cannot be read") from None
    return signed


def _check_types(signed: Signed) -> None:
    """LookupError, TypeError: it holds something else than Signed says, as another version may have written it."""
    paths = [*signed.config, *signed.files, *signed.files.values(), *(module["name"] for module in signed.modules)]
    known = [value for module in signed.modules for value in (module["path"], module["sha256"]) if value is not None]
    if not all(isinstance(text, str) for text in (*paths, *known)) or isinstance(signed.config, str):
        raise TypeError("a name, a path or a sum is no text")
    if not all(isinstance(module["kept"], bool) for module in signed.modules):
        raise TypeError("whether own/ has a module is neither true nor false")


def _contents(file: Path) -> bytes | None:
    """What a file holds; None: it is none, is too large, or cannot be read."""
    try:
        found = file.stat()
        return file.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_BYTES else None
    except OSError:
        return None


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
