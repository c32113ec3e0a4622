"""Lines of JSON that grow by one with every generation, each with a checksum of itself as its last key.

    {"generation": 3, "fitness_mean": 210.5, "crc32": "a6ec1d21"}

The sum is the CRC-32 of the line's bytes without it, of {"generation": 3, "fitness_mean": 210.5}, as eight hexadecimal
digits. A line without one is read, too: as earlier versions wrote them, or as somebody left it who corrected it.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from neuroevo.system.reading import open_regular, parse_json
from neuroevo.training.record import CHECKSUM

_SEAL = re.compile(rb', "%s": "([0-9a-f]{8})"\}\n' % CHECKSUM.encode())
_SEAL_BYTES = len(f', "{CHECKSUM}": "00000000"}}\n')
LONGEST = 1 << 28
"""Bytes of a line; one of ours has at most some 20 for each genome of the population."""


class DamagedLine(ValueError):
    """A line is not what was written; the message names the file, the line, and what was expected."""

    def __init__(self, path: Path, number: int, reason: object):
        super().__init__(f"line {number} of {path} is damaged: {reason}")


def sealed(row: Mapping[str, Any]) -> bytes:
    """Writes a line.

    Args:
        row: Its values, at least one, under other names than CHECKSUM.

    Returns:
        The line, with its end.
    """
    text = json.dumps(row, allow_nan=False).encode()
    return text[:-1] + b', "%s": "%08x"}\n' % (CHECKSUM.encode(), zlib.crc32(text))


def lines(
    path: Path, length: int | None, after: tuple[int, int] = (0, 0)
) -> Iterator[tuple[int, dict[str, Any], bool]]:
    """Reads a file, without a last line that a killed run had not finished writing.

    Args:
        path: The file.
        length: Bytes to read, from the beginning of the file; None reads all complete lines.
        after: How many lines were read before, and how many bytes these have: it goes on behind them.

    Yields:
        A line's number, from 1; its values without the sum, of which generation is the number of lines before it; and
        whether the line has a sum, so that its values are as they were written.

    Raises:
        DamagedLine: A line is not what was written.
        OSError: The file cannot be read.
    """
    with open_regular(path) as file:
        number, at = after
        file.seek(at)
        while line := file.readline(LONGEST + 1):
            number, at = number + 1, at + len(line)
            if len(line) > LONGEST:
                raise DamagedLine(path, number, f"it has more than {LONGEST:,} bytes")
            if at - len(line) == length or (length is None and not line.endswith(b"\n")):
                return
            if not line.endswith(b"\n") or (length is not None and at > length):
                raise DamagedLine(path, number, f"it goes to byte {at:,}, expected an end at {length:,}")
            try:
                row, has_sum = _row(line)
            except ValueError as error:
                raise DamagedLine(path, number, error) from None
            generation = row.get("generation")
            if type(generation) is not int or generation != number - 1:
                said = f"its generation is {str(generation)[:80]}, expected {number - 1}"
                raise DamagedLine(path, number, said)
            yield number, row, has_sum


def _row(line: bytes) -> tuple[dict[str, Any], bool]:
    """A line's values, and whether it has a sum. ValueError: it is damaged."""
    seal = _SEAL.fullmatch(line[-_SEAL_BYTES:])
    text = line if seal is None else line[:-_SEAL_BYTES] + b"}"
    if seal is not None and b"%08x" % zlib.crc32(text) != seal[1]:
        raise ValueError(f"its CRC-32 sum is {zlib.crc32(text):08x}, expected {seal[1].decode()} as it says")
    try:
        row = parse_json(text)
    except ValueError as error:
        raise ValueError(f"it is not JSON ({error}): {line[:80]!r}") from None
    if not isinstance(row, dict):
        raise ValueError(f"it is not a JSON object: {line[:80]!r}")
    if CHECKSUM in row:
        raise ValueError(f"{CHECKSUM} is {str(row[CHECKSUM])[:80]!r}, expected eight hexadecimal digits at its end")
    return row, seal is not None
