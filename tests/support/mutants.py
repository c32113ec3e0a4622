"""Damaged bytes and values for tests of what reads them, and how many of each are tried.

NEUROEVO_TEST_FUZZ is how many examples each property has, instead of a few; they are then others in every run.
"""

from __future__ import annotations

import copy
import os
import random
import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_EXAMPLES = os.environ.get("NEUROEVO_TEST_FUZZ")
_SECONDS = 30  # of processor time, for what takes milliseconds: more means that it does not end

seeds = st.integers(0, 2**63 - 1)
"""What a mutant is made from: it is the same for the same seed."""


def fuzz(few: int) -> settings:
    """The settings of a property: this many examples, the same in every run, or as many as the environment says."""
    return settings(
        max_examples=int(_EXAMPLES or few),
        derandomize=_EXAMPLES is None,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def bounded(megabytes: int) -> Iterator[None]:
    """AssertionError: the block takes more memory than this, or does not end."""

    def stop(*_: object) -> None:
        raise AssertionError(f"took more than {_SECONDS} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert peak < megabytes << 20, f"took {peak:,} bytes of memory"


_PIECES = [b"", b"\0" * 40, b"\xff", b"\n", b"[" * 2000, b"{" * 70, b'"', b"9" * 30, b"1e999", b"-1", b"true", b"null"]
_PIECES += [b"NaN", b"Infinity", b"\\ud800", b"[]", b"{}", b"0.5", b'"x"', b"1" * 5000, b",", b":", b"'", b"\r\n"]


def damaged(data: bytes, seed: int) -> bytes:
    """Bytes of which some are flipped, cut, repeated, moved or replaced."""
    draw = random.Random(seed)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.choice([0, 1, 1, 2, 8, 64, 1000]))
        kind = draw.randrange(6)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[end:]
        elif kind == 2:
            data = data[:end] + data[at:]
        elif kind == 3:
            data = data[:at]
        elif kind == 4:
            to = draw.randrange(len(data) + 1)
            data = data[:to] + data[at:end] + data[to:]
        else:
            data = data[:at] + draw.choice(_PIECES) + data[end:]
    return data


_VALUES: list[Any] = [None, True, False, 0, -1, 1, 2, 7, 2**31, 2**63, 10**400, 0.5, -2.5, 1e300, "", "x", "0"]
_VALUES += [[], [[]], [1, 2], [None], {}, {"genome": 0}, {"array": 0}, {"map": {}}, {"fields": {}}, {"genome": -1}]
_VALUES += [{"array": True}, {"map": [1]}, {"x": 1}, float("inf"), float("nan"), {"array": 10**9}, "\ud800"]
_VALUES += ["sha256:" + "0" * 64]


def changed(value: Any, seed: int) -> Any:
    """JSON values of which some have others, other names, or other places."""
    draw = random.Random(seed)
    value = copy.deepcopy(value)
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        places = list(_places(value))
        if not places:
            return draw.choice(_VALUES)
        table, key = draw.choice(places)
        kind = draw.randrange(6)
        if kind == 0:
            del table[key]
        elif kind == 1:
            other_table, other = draw.choice(places)
            table[key] = copy.deepcopy(other_table[other])
        elif kind == 2 and isinstance(table, list):
            table.insert(key, copy.deepcopy(table[key]))
        elif kind == 3 and isinstance(table, dict):
            table[draw.choice(["x", "", "base", "genome", "fields"])] = table.pop(key)
        elif kind == 4 and isinstance(table[key], int | float):
            number = table[key]
            half = number * 0.5 if abs(number) < 1e300 else 0.5  # of no float where there are digits enough
            table[key] = draw.choice([number + 1, -number, str(number), half, [number]])
        else:
            table[key] = copy.deepcopy(draw.choice(_VALUES))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every list and table with every index and key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
