"""The user's key, by which this user's neuroevo knows again what it has made: 32 random bytes in a file of their own.

It is $XDG_STATE_HOME/neuroevo/key, by default ~/.local/state/neuroevo/key, with mode 0600, and made when it is first
needed. Whoever has it can make runs that this user's neuroevo trusts.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_BYTES = 32


class NoKeyError(RuntimeError):
    """There is no key that can be used; the message says why, with the file's name."""


def key_path() -> Path:
    """Where the key is.

    Raises:
        NoKeyError: The user has no home.
    """
    folder = os.environ.get("XDG_STATE_HOME", "")
    try:  # one that is not absolute is to be ignored, says the XDG specification
        state = Path(folder) if os.path.isabs(folder) else Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise NoKeyError(f"no key can be kept: {error}") from None
    return state / "neuroevo" / "key"


def sign(purpose: str, data: bytes) -> str:
    """The code that shows that something is this user's. The key is made where there is none.

    Args:
        purpose: What it is, so that a code for one purpose is none for another.
        data: Its bytes.

    Returns:
        HMAC-SHA-256, in hexadecimal digits.

    Raises:
        NoKeyError: The key cannot be made or read.
    """
    path = key_path()
    try:
        if not path.is_symlink() and not path.exists():
            _make(path)
    except OSError as error:
        raise NoKeyError(f"{path} cannot be written: {error.strerror}") from None
    return _code(_read(path), purpose, data)


def is_signed(purpose: str, data: bytes, code: object) -> bool:
    """Whether this user's key has made a code; writes nothing.

    Args:
        purpose: As sign() took it.
        data: Likewise.
        code: What is said to be the code, of any type.

    Raises:
        NoKeyError: There is no key that can be read.
    """
    expected = _code(_read(key_path()), purpose, data)
    return isinstance(code, str) and hmac.compare_digest(expected.encode(), code.encode("utf-8", "replace"))


def _code(key: bytes, purpose: str, data: bytes) -> str:
    return hmac.new(key, purpose.encode() + b"\0" + data, hashlib.sha256).hexdigest()


def _make(path: Path) -> None:
    """Makes the key, unless another process has made it meanwhile: it is never there in parts. OSError: it cannot."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = path.with_name(f".key.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def _read(path: Path) -> bytes:
    """The key. NoKeyError: there is none, or others could know it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NoKeyError(f"there is no key {path}") from None
    except OSError as error:
        raise NoKeyError(f"the key {path} cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise NoKeyError(f"the key {path} is not used, since it is not a file of this user's")
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o077:
            others = f"others may read or write it: it has mode {mode:o}, expected 600"
            raise NoKeyError(f"the key {path} is not used, since {others}")
        key = os.read(handle, _BYTES + 1)
    except OSError as error:
        raise NoKeyError(f"the key {path} cannot be read: {error.strerror}") from None
    finally:
        os.close(handle)
    if len(key) != _BYTES:
        raise NoKeyError(f"the key {path} is damaged: expected {_BYTES} bytes; once it is deleted, another is made")
    return key
