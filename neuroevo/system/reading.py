"""Reading of untrusted files: only regular files, and JSON and TOML with limited nesting.

Opening a pipe blocks until another process writes to it, a device may be endless, and deeply nested brackets exceed
Python's recursion limit later on. The functions here raise the same errors for these as for damaged files.
"""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

LARGEST_TEXT = 1 << 24  # bytes; configurations have a few thousand
DEEPEST = 64  # nesting levels of lists and tables; configurations and states have less than ten


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: The file cannot be opened, or is a folder, a pipe, a device or a socket.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe is opened without waiting
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path) -> bytes:
    """Read a whole regular file.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: The file cannot be read, is a folder, a pipe, a device or a socket, or does not fit into memory.
    """
    with open_regular(path) as file:
        try:
            return file.read()
        except MemoryError:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), str(path)) from None


def read_text(path: Path) -> str:
    """Read a UTF-8 text file with line endings of any system.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: The file cannot be read, is not a regular file, or has more than LARGEST_TEXT bytes.
        UnicodeDecodeError: The text is not UTF-8.
    """
    with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
        if os.fstat(file.fileno()).st_size > LARGEST_TEXT:
            raise OSError(errno.EFBIG, f"it has more than {LARGEST_TEXT:,} bytes", str(path))
        return file.read()


def parse_json(text: bytes | str, nan: bool = False) -> Any:
    """Parse JSON.

    Args:
        text: The text; bytes are decoded as UTF-8.
        nan: Whether to accept Python's NaN and Infinity, which are not valid JSON.

    Returns:
        The values. A number with a too large exponent is infinite.

    Raises:
        ValueError: The text is not JSON, contains NaN or Infinity without `nan`, or nests deeper than DEEPEST.
    """
    text = text if isinstance(text, str) else text.decode()
    try:
        value = json.loads(text, parse_constant=float if nan else _no_constant)
    except RecursionError:
        raise ValueError(f"it nests deeper than {DEEPEST} lists and objects") from None
    if text.count("[") + text.count("{") > DEEPEST:  # otherwise the nesting cannot be too deep
        _check_depth(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Args:
        text: The text.

    Returns:
        The top-level table.

    Raises:
        ValueError: The text is not TOML, nests deeper than DEEPEST, or has an integer too large to format.
    """
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"it nests deeper than {DEEPEST} lists and tables") from None
    _check_depth(tables)
    repr(tables)  # raises ValueError for a too long hexadecimal integer, as parsing does for a decimal one
    return tables


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a valid JSON number")


def _check_depth(value: Any) -> None:
    """Check the nesting of lists and tables. ValueError: it is deeper than DEEPEST."""
    level = [value] if isinstance(value, (list, dict)) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (list, dict))
        ]
        if not level:
            return
    raise ValueError(f"it nests deeper than {DEEPEST} lists and tables")
