"""Versions and builds that have to be identical on all machines, so that outcomes are identical."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Mapping
from pathlib import Path

from neuroevo.core.errors import UserError
from neuroevo.core.version import VERSION
from neuroevo.native import library


def origin() -> dict[str, str]:
    """Return the versions and builds that have to be identical on all machines, by name."""
    build = library.build_info()
    return {
        "neuroevo": VERSION,
        "Python sources of neuroevo (SHA-256)": _sources(),
        **{f"native code's {name}": str(build.get(name)) for name in ("ale", "mujoco", "sanitize")},
    }


def _sources() -> str:
    """Return a SHA-256 digest of the package's modules, which identifies the commit of a checkout."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def check_origin(expected: Mapping[str, str]) -> None:
    """Check that this machine has the same versions and builds as the driver.

    Args:
        expected: origin() of the driver's machine.

    Raises:
        UserError: A version or build differs; the message names the first difference.
    """
    found = origin()
    for name, value in expected.items():
        if found.get(name) != value:
            raise UserError(
                f"{socket.gethostname()} has {name} {found.get(name)}, expected {value} as on the driver; "
                "install the same version on every machine"
            )
