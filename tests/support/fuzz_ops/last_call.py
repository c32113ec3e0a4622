"""What each thread of the fuzzer calls, in memory that outlives its process: the parent reads it when that has died."""

from __future__ import annotations

import mmap
import pickle
import struct
import time
from pathlib import Path
from typing import Any

THREADS = 8
_BYTES = 1 << 16  # for each thread: how many calls it has made, how long the description is, and the description
_HEAD = struct.Struct("qq")


class LastCalls:
    """A file that is mapped into the memory of parent and child."""

    def __init__(self, path: Path):
        if not path.exists():
            path.write_bytes(bytes(THREADS * _BYTES))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), THREADS * _BYTES)

    def write(self, thread: int, number: int, what: Any) -> None:
        """Notes, before a call, its number and what it is."""
        data = pickle.dumps(what)
        if len(data) > _BYTES - _HEAD.size:
            data = pickle.dumps(repr(what)[: _BYTES // 8])
        at = thread * _BYTES
        self._memory[at + _HEAD.size : at + _HEAD.size + len(data)] = data
        _HEAD.pack_into(self._memory, at, number, len(data))

    def read(self) -> dict[int, tuple[int, Any]]:
        """Number and description of the last call of each thread that made one."""
        calls = {}
        for thread in range(THREADS):
            number, length = _HEAD.unpack_from(self._memory, thread * _BYTES)
            start = thread * _BYTES + _HEAD.size
            if number:
                calls[thread] = number, pickle.loads(self._memory[start : start + length])
        return calls

    def calls(self) -> int:
        """How many were made in all threads."""
        return sum(_HEAD.unpack_from(self._memory, thread * _BYTES)[0] for thread in range(THREADS))

    def wait_for_progress(self, patience: float, over: Any) -> bool:
        """Returns True when over() is; False once no call has begun for `patience` seconds."""
        seen, since = self.calls(), time.monotonic()
        while not over():
            time.sleep(0.05)
            if (now := self.calls()) != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                return False
        return True
