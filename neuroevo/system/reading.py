"""Read files that anybody may have put there: regular ones only, and JSON and TOML that nest no deeper than ours do.

Opening a pipe waits for whoever writes into it, a device may never end, and a text of brackets alone ends Python's
recursion somewhere later. All of these end here, with an error of the kinds that callers expect of a damaged file.
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
DEEPEST = 64  # of lists and tables in each other; configurations and states have less than ten


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: It cannot be opened, or is a folder, a pipe, a device or a socket.
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
    """Read all of a regular file.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: It cannot be read, is a folder, a pipe, a device or a socket, or does not fit into memory.
    """
    with open_regular(path) as file:
        try:
            return file.read()
        except MemoryError:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), str(path)) from None


def read_text(path: Path) -> str:
    """Read a text in UTF-8, whose lines may end as on any system.

    Args:
        path: The file, or a link to it.

    Raises:
        OSError: It cannot be read, is no regular file, or has more than LARGEST_TEXT bytes.
        UnicodeDecodeError: It is not UTF-8.
    """
    with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig") as file:
        if os.fstat(file.fileno()).st_size > LARGEST_TEXT:
            raise OSError(errno.EFBIG, f"it has more than {LARGEST_TEXT:,} bytes", str(path))
        return file.read()


def parse_json(text: bytes | str, nan: bool = False) -> Any:
    """Read JSON.

    Args:
        text: The text, in UTF-8 where it is bytes.
        nan: Whether NaN and Infinity, which JSON does not have, are numbers as Python writes them.

    Returns:
        The values. A number may be infinite where it is written with too large an exponent.

    Raises:
        ValueError: It is not JSON, says NaN or Infinity without `nan`, or nests deeper than DEEPEST.
    """
    text = text if isinstance(text, str) else text.decode()
    try:
        value = json.loads(text, parse_constant=float if nan else _no_constant)
    except RecursionError:
        raise ValueError(f"it nests deeper than {DEEPEST} lists and objects") from None
    if text.count("[") + text.count("{") > DEEPEST:  # else it cannot
        _check_depth(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """Read TOML.

    Args:
        text: The text.

    Returns:
        Its tables.

    Raises:
        ValueError: It is not TOML, nests deeper than DEEPEST, or has a whole number that Python cannot write.
    """
    try:
        tables = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"it nests deeper than {DEEPEST} lists and tables") from None
    _check_depth(tables)
    repr(tables)  # raises ValueError, of a hexadecimal number, as reading does of a decimal one
    return tables


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_depth(value: Any) -> None:
    """ValueError: lists and tables nest deeper than DEEPEST."""
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
