"""Row values that SQLite does not support: arrays, finite numbers and checksums."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from struct import pack
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from neuroevo.core.errors import UserError
from neuroevo.system.reading import parse_json

Number = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number in a row. SQLite can store infinite numbers, but neuroevo never writes them."""
_DTYPES = ("|u1", "|b1", "<i4", "<i8", "<f4", "<f8", "<u4", "<u8", "|i1", "<i2", "<u2")


class DamagedError(UserError):
    """The database, or a part of it, does not contain what neuroevo wrote."""


def checksum(*values: Any) -> int:
    """Return the CRC-32 of values, each None, an integer, a float, a string or bytes."""
    total = 0
    for value in values:
        data = value if isinstance(value, bytes) else _encoded(value)
        total = zlib.crc32(data, zlib.crc32(f"{type(value).__name__}{len(data)}:".encode(), total))
    return total


def _encoded(value: Any) -> bytes:
    return pack("<d", value + 0.0) if isinstance(value, float) else str(value).encode()  # SQLite has no -0.0


def array_row(array: np.ndarray, state: int | None = None) -> dict[str, Any]:
    """Return the row of an array; see Database.add_array().

    Raises:
        ValueError: The dtype is not a supported numeric dtype.
    """
    own = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    if own.dtype.str not in _DTYPES:
        raise ValueError(f"an array has dtype {own.dtype}, expected one of {', '.join(_DTYPES)}")
    row: dict[str, Any] = {"state": state, "dtype": own.dtype.str, "shape": json.dumps(list(array.shape))}
    row["data"] = own.tobytes()
    return {**row, "checksum": checksum(*row.values())}


def array_of(dtype: str, shape: Sequence[int], data: bytes) -> np.ndarray:
    """Decode an array from bytes.

    Raises:
        DamagedError: The dtype is invalid, or the size does not match the shape.
    """
    if dtype not in _DTYPES or int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize != len(data):
        raise DamagedError(f"an array of {dtype[:20]} {str(list(shape))[:80]} has {len(data):,} bytes")
    try:
        own = np.frombuffer(data, dtype).reshape(shape)
    except ValueError as error:  # more dimensions than NumPy supports, or too long ones next to one of length 0
        raise DamagedError(f"an array of {dtype} {str(list(shape))[:80]}: {error}") from None
    return own.astype(own.dtype.newbyteorder("="))


def shape_of(text: str) -> list[int]:
    """Parse a shape that is stored as JSON. DamagedError: it is malformed."""
    try:
        shape = parse_json(text)
    except ValueError:
        shape = None
    if not isinstance(shape, list) or not all(type(each) is int and 0 <= each < 1 << 40 for each in shape):
        raise DamagedError(f"the shape of an array is {text[:80]}, expected a list of lengths")
    return shape
