"""Reads arrays in NumPy's .npy format out of bytes, of which a header cannot ask for more than there are."""

from __future__ import annotations

import io
import math

import numpy as np

_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_array(file: io.BytesIO) -> np.ndarray:
    """Reads the next array.

    Args:
        file: Where one begins; afterwards at its end.

    Returns:
        The array, which may be written to.

    Raises:
        ValueError: It is none, holds objects, or is larger than what is left of the file.
    """
    try:
        version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]  # NumPy gives it no types
        shape, by_columns, dtype = _READERS[version](file)  # type: ignore[no-untyped-call]
    except Exception as error:  # what Python's parser raises, which NumPy lets read the header, is of many kinds
        raise ValueError(f"an array has no header of NumPy's: {error} ({type(error).__name__})") from None
    if dtype.hasobject or dtype.itemsize == 0:
        raise ValueError(f"an array is of {dtype}, expected numbers")
    written = np.lib.format.dtype_to_descr(dtype)  # type: ignore[no-untyped-call]
    if np.lib.format.descr_to_dtype(written) != dtype:  # type: ignore[no-untyped-call]
        raise ValueError(f"an array is of {dtype}, expected what NumPy's format gives back as it is")
    if any(type(length) is not int or length < 0 for length in shape):
        raise ValueError(f"an array has shape {list(shape)}, expected lengths of at least 0")
    count, begin = math.prod(shape), file.tell()
    size, left = count * dtype.itemsize, file.getbuffer().nbytes - begin
    if size > left:
        raise ValueError(f"an array of {dtype} {list(shape)} takes {size:,} bytes, and {left:,} are left")
    values = np.frombuffer(file.getbuffer(), dtype, count, begin).copy() if count else np.empty(0, dtype)
    file.seek(begin + size)
    try:
        return values.reshape(shape, order="F" if by_columns else "C")
    except (ValueError, OverflowError) as error:  # of nothing, but of more dimensions, or longer ones, than NumPy has
        raise ValueError(f"an array has shape {list(shape)}: {error}") from None
