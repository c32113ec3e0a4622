"""Versions and builds that have to be the same on all machines, so that they play the same."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from pathlib import Path

from neuroevo.core.errors import UserError
from neuroevo.core.version import VERSION
from neuroevo.native import library


def origin() -> dict[str, str]:
    """Return the values that have to be the same on all machines, by name."""
    build = library.build_info()
    return {
        "neuroevo": VERSION,
        "Python sources of neuroevo (SHA-256)": _sources(),
        **{f"native code's {name}": str(build.get(name)) for name in ("ale", "mujoco", "sanitize")},
    }


def _sources() -> str:
    """Return a SHA-256 sum over the package's modules, which differs in a checkout of another commit."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def check_origin(expected: Mapping[str, str]) -> None:
    """Check that this machine has what the driver has.

    Args:
        expected: origin() of the driver's machine.

    Raises:
        UserError: It does not; the message names the first difference.
    """
    found = origin()
    for name, value in expected.items():
        if found.get(name) != value:
            raise UserError(
                f"{socket.gethostname()} has {name} {found.get(name)}, expected {value} as the driver has; "
                "install the same on every machine"
            )
