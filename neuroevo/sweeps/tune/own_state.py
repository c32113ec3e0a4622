"""Whether Ray Tune's state in a sweep's folder is this user's own: it is pickles, which run whatever they say.

They change every second, so that only the folder itself is signed, by its path, when its sweep begins: that tells a
sweep that came from elsewhere, and not who has written into this user's own folder since.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from neuroevo.core.errors import NotTrustedError
from neuroevo.system.files import write_atomically
from neuroevo.system.user_key import NoKeyError, is_signed, sign

_SIGNATURE = "signature.json"  # in the sweep's folder
_PURPOSE = "sweep"


def sign_state(out: Path) -> None:
    """Signs the folder of a sweep that begins.

    Args:
        out: The folder.

    Raises:
        OSError: It cannot be written.
    """
    try:
        code = sign(_PURPOSE, _place(out))
    except NoKeyError as error:
        print(f"neuroevo: the sweep will go on with --trust only: {error}", file=sys.stderr, flush=True)
        return
    write_atomically(out / _SIGNATURE, (json.dumps({"hmac": code}) + "\n").encode())


def require_own_state(out: Path) -> None:
    """Checks that a sweep that goes on has begun in its folder, by this user.

    Args:
        out: The folder.

    Raises:
        NotTrustedError: Nothing shows it.
    """
    try:
        own = is_signed(_PURPOSE, _place(out), json.loads((out / _SIGNATURE).read_bytes())["hmac"])
        reason = f"its {_SIGNATURE} is not by your key on this machine, or of another folder"
    except NoKeyError as error:
        own, reason = False, f"whether it was begun here cannot be known: {error}"
    except (OSError, ValueError, LookupError, TypeError):
        own, reason = False, f"nothing shows that it was begun here (it has no {_SIGNATURE} that can be read)"
    if not own:
        raise NotTrustedError(
            f"to go on with the sweep in {out}, Ray Tune's state in it is unpickled, which can run any code, and "
            f"{reason}. If you trust whoever made it, say so with --trust; docs/security.md tells what that means"
        )


def _place(out: Path) -> bytes:
    return str(out.resolve()).encode("utf-8", "surrogateescape")
