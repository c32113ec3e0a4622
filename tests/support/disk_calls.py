"""The calls of the operating system by which Python code touches what is below a folder: they can be told of, or fail.

Only calls made by the os module's functions, and by Path.open, are seen; not those of extension modules.
"""

from __future__ import annotations

import errno
import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Each with the numbers of its arguments that may be paths, and how their folders' descriptors are called.
_PATHS: dict[str, tuple[tuple[int, str], ...]] = {
    "open": ((0, "dir_fd"),),
    "mkdir": ((0, "dir_fd"),),
    "unlink": ((0, "dir_fd"),),
    "remove": ((0, "dir_fd"),),
    "rmdir": ((0, "dir_fd"),),
    "stat": ((0, "dir_fd"),),
    "lstat": ((0, "dir_fd"),),
    "readlink": ((0, "dir_fd"),),
    "listdir": ((0, ""),),
    "scandir": ((0, ""),),
    "truncate": ((0, ""),),
    "replace": ((0, "src_dir_fd"), (1, "dst_dir_fd")),
    "rename": ((0, "src_dir_fd"), (1, "dst_dir_fd")),
    "link": ((0, "src_dir_fd"), (1, "dst_dir_fd")),
    "symlink": ((1, "dir_fd"),),
}
_DESCRIPTORS = ("write", "pread", "read", "fstat", "fsync", "ftruncate", "close")
CHANGING = ("mkdir", "replace", "rename", "write", "fsync", "ftruncate")  # what needs room, beside making files
Call = Callable[[], Any]
Hook = Callable[[str, tuple[Any, ...], dict[str, Any], Call], Any]


@contextmanager
def intercepted(base: Path, hook: Hook) -> Iterator[None]:
    """Hands every call about the folder or what is below it to hook(name, arguments, keywords, call).

    The hook makes the call by call() and returns its answer, or raises an exception.
    """
    above = os.path.abspath(base)
    opened: set[int] = set()
    before = {name: getattr(os, name) for name in (*_PATHS, *_DESCRIPTORS)}
    open_file = io.open

    def inside(path: Any, folder: int | None) -> bool:
        if isinstance(path, int):
            return path in opened
        if folder is not None and not os.path.isabs(path):
            return folder in opened
        full = os.path.abspath(os.fsdecode(path))
        return full == above or full.startswith(above + os.sep)

    def wrapped(name: str) -> Callable[..., Any]:
        def function(*arguments: Any, **keywords: Any) -> Any:
            places = _PATHS.get(name, ((0, ""),))
            if not any(inside(arguments[at], keywords.get(folder)) for at, folder in places if at < len(arguments)):
                return before[name](*arguments, **keywords)

            def call() -> Any:
                answer = before[name](*arguments, **keywords)
                if name == "open":
                    opened.add(answer)
                elif name == "close":
                    opened.discard(arguments[0])
                return answer

            return hook(name, arguments, keywords, call)

        return function

    def opening(file: Any, *arguments: Any, **keywords: Any) -> Any:
        if isinstance(file, int) or not inside(file, None):
            return open_file(file, *arguments, **keywords)
        return hook("io.open", (file, *arguments), keywords, lambda: open_file(file, *arguments, **keywords))

    for name in before:
        setattr(os, name, wrapped(name))
    io.open = opening
    try:
        yield
    finally:
        io.open = open_file
        for name, function in before.items():
            setattr(os, name, function)


class Faults:
    """A hook that fails calls: one of them, or it and all after it.

    number: which call, counted from 1; 0: none. count: calls so far. code: of errno; with ENOSPC and EDQUOT only calls
    that need room are counted. once: whether the calls after it succeed.
    """

    def __init__(self, number: int, code: int = errno.EIO, once: bool = True):
        self.number, self.code, self.once, self.count = number, code, once, 0

    def __call__(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], call: Call) -> Any:
        makes = name == "open" and bool(arguments[1] & os.O_CREAT)
        if self.code in (errno.ENOSPC, errno.EDQUOT) and name not in CHANGING and not makes:
            return call()
        self.count += 1
        if self.number == 0 or self.count < self.number or (self.once and self.count > self.number):
            return call()
        if name == "close":  # the descriptor is free even so
            call()
        if name == "write":  # a part of it is there
            _write_half(arguments)
        raise OSError(self.code, os.strerror(self.code))


def _write_half(arguments: tuple[Any, ...]) -> None:
    file, data = arguments
    half = bytes(data[: len(data) // 2])
    if half:
        os.writev(file, [half])  # which is not intercepted


def killing(name: str) -> Hook:
    """A hook that kills this process when a file of that name is about to be put in its place."""

    def hook(call_name: str, arguments: tuple[Any, ...], _: dict[str, Any], call: Call) -> Any:
        if call_name == "replace" and os.fsdecode(arguments[1]) == name:
            os.kill(os.getpid(), signal.SIGKILL)
        return call()

    return hook
