"""The calls of the operating system by which a process touches what is below a folder: they are recorded, or fail.

disk_calls.cc, which Python's and SQLite's calls go through in a process that is started with environment(), does it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CREATE, MKDIR, WRITE, TRUNCATE, SYNC, RENAME, UNLINK, MARK = range(1, 9)
_HEADER = struct.Struct("<IIQQqQ")


@dataclass(frozen=True)
class Call:
    """A call that changed something.

    Attributes:
        operation: Which one.
        names: Paths from the folder on: of CREATE, MKDIR and UNLINK one, of RENAME two.
        node: Device and inode of the file or folder.
        number: The offset of a WRITE, the size of a TRUNCATE, what a MARK was called with.
        data: What was written.
    """

    operation: int
    names: tuple[str, ...]
    node: tuple[int, int]
    number: int
    data: bytes


def environment() -> dict[str, str]:
    """The environment of a process in which begin() can be called."""
    return {**os.environ, "LD_PRELOAD": f"{_compiled().name}/disk_calls.so"}


@functools.cache
def _compiled() -> tempfile.TemporaryDirectory[str]:
    """The folder of the library, which is deleted with the process."""
    folder = tempfile.TemporaryDirectory()
    source, library = Path(__file__).with_suffix(".cc"), f"{folder.name}/disk_calls.so"
    subprocess.run(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return folder


def begin(folder: Path, record: Path | None = None, fault: tuple[int, int, bool] = (0, 0, False)) -> None:
    """From now on, records this process's calls about a folder and what is below it, or has some of them fail.

    Args:
        folder: The folder, which need not exist.
        record: The file that gets what recorded() reads.
        fault: Which call fails, counted from 1, or 0; with which number of errno; and whether no call after it does.
            With ENOSPC only calls that need room are counted. Of a write that fails, half is there.
    """
    number, code, once = fault
    name = os.fsencode(os.path.realpath(folder))
    _library().disk_calls_begin(
        name, b"" if record is None else os.fsencode(record), ctypes.c_longlong(number), int(code), int(once)
    )


def mark(number: int) -> None:
    """Records a number between the calls."""
    _library().disk_calls_mark(ctypes.c_longlong(number))


def count() -> int:
    """How many calls could have failed since begin()."""
    function = _library().disk_calls_count
    function.restype = ctypes.c_longlong
    return int(function())


def recorded(file: Path) -> Iterator[Call]:
    """The calls in their order."""
    data, at = file.read_bytes(), 0
    while at < len(data):
        operation, name_bytes, device, inode, number, data_bytes = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        names = tuple(os.fsdecode(name) for name in data[at : at + name_bytes].split(b"\0"))
        at += name_bytes
        yield Call(operation, names, (device, inode), number, data[at : at + data_bytes])
        at += data_bytes


def kill_at_rename(name: str) -> None:
    """From now on, kills this process when a file of that name is about to be put in its place."""
    replace = Path.replace

    def killing(path: Path, target: Any) -> Path:
        if Path(target).name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        return replace(path, target)

    Path.replace = killing  # type: ignore[method-assign]


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)
