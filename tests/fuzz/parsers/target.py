"""Fuzz targets of Python parsers, and mutation of their inputs: bytes, or values of lines of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.support.mutants import changed


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes:
        check: Has it read an input. Raises nothing but AssertionError, where what was read is not as it should be:
            whatever else comes out of it is a finding.
        seeds: Makes inputs that are as they should be, from which others are made.
    """

    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def words_of(inputs: Iterable[bytes]) -> list[str]:
    """The words of inputs, which others may be put together from.

    Args:
        inputs: What a target begins with.
    """
    words = {word.decode() for each in inputs for word in re.findall(rb"[A-Za-z_][A-Za-z0-9_.-]+", each[:20_000])}
    return sorted(words)[:2000]


def with_changed_values(data: bytes, seed: int) -> bytes | None:
    """An input of which one line of JSON has other values; None: none of its lines is JSON.

    Args:
        data: The input, whose first byte may be the choice of what reads it, before a line.
        seed: What the mutant is made from.
    """
    draw = random.Random(seed)
    lines = data.split(b"\n")
    order = list(range(len(lines)))
    draw.shuffle(order)
    for number in order[:8]:  # an input may have thousands, of other kinds
        start = 1 if number == 0 and lines[0][1:2] in (b"{", b"[") else 0
        try:
            value = json.loads(lines[number][start:])
        except (ValueError, RecursionError):
            continue
        if isinstance(value, (dict, list)):
            lines[number] = lines[number][:start] + json.dumps(changed(value, seed)).encode()
            return b"\n".join(lines)
    return None
