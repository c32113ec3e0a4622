"""The target of signature.json, by which a run's folder shows that this user made the run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from neuroevo.config.signature import SIGNATURE, Signed, Unsigned, check_signature, write_signature
from neuroevo.system.directory import Directory
from neuroevo.system.user_key import sign

from neuroevo.core.named_code import NamedCode
from tests.fuzz.parsers.target import Target

_TEMPORARY = TemporaryDirectory(prefix="neuroevo_fuzz_")  # as long as the process
_FOLDER = Path(_TEMPORARY.name)


def _signature(data: bytes) -> None:
    """Signed with a key of its own, if it has what is signed; config.toml is as the signature says."""
    folder = _FOLDER / "signed"
    given = data
    with _another_key():
        try:
            values = json.loads(data)
            code = sign("run", Signed(values["config"], values["modules"], values["files"]).to_bytes())
            given = json.dumps({**values, "hmac": code}).encode()
        except (ValueError, LookupError, TypeError, RecursionError):
            pass
        (folder / SIGNATURE).write_bytes(given)
        try:
            kept = check_signature(folder, _CONFIG, _NAMED)
        except Unsigned as error:
            assert str(error)
            return
    assert set(kept) <= {"fuzzed_module"}


@contextmanager
def _another_key() -> Iterator[None]:
    """The user's own key is not touched."""
    with patch.dict(os.environ, XDG_STATE_HOME=str(_FOLDER / "state")):
        yield


_CONFIG = "[env]\n"
_NAMED = [
    NamedCode("network.name", "imports the module fuzzed_module", module="fuzzed_module"),
    NamedCode("env.name", "has MuJoCo read a file", file=_FOLDER / "signed" / "robot.xml"),
]


def _signatures() -> list[bytes]:
    folder = _FOLDER / "signed"
    (folder / "own").mkdir(parents=True, exist_ok=True)
    (folder / "own" / "fuzzed_module.py").write_text("x = 1\n")
    (folder / "robot.xml").write_text("<mujoco/>\n")
    with Directory(folder) as opened, _another_key():
        write_signature(opened, [_CONFIG, "[env] # before\n"], _NAMED)
    return [(folder / SIGNATURE).read_bytes()]


TARGETS = {"signature": Target(_signature, _signatures)}
