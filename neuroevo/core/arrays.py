"""Checks of states that were read from a file. The class of a state defines its shapes and ranges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Checked:
    """Base class of dataclasses stored in checkpoints, with checks beyond the types of their fields."""

    def check_state(self) -> None:
        """Check shapes and ranges.

        Raises:
            ValueError: A value is invalid.
        """


def check_array(what: str, array: np.ndarray, shape: Sequence[int | None], *dtypes: type) -> None:
    """Check one array.

    Args:
        what: The array's name in the message.
        array: The array.
        shape: Its expected shape; None is any length of at least 1.
        dtypes: The allowed dtypes.

    Raises:
        ValueError: The array has another shape or dtype, or contains a number that is not finite.
    """
    kinds = [np.dtype(dtype) for dtype in dtypes]
    fits = len(array.shape) == len(shape) and all(
        length >= 1 if expected is None else length == expected
        for length, expected in zip(array.shape, shape, strict=True)
    )
    if array.dtype not in kinds or not fits:
        names = " or ".join(map(str, kinds))
        lengths = ", ".join("any" if length is None else str(length) for length in shape)
        raise ValueError(f"{what} is {array.dtype} {list(array.shape)}, expected {names} [{lengths}]")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{what} has numbers that are not finite")


def check_counts(**counts: int) -> None:
    """Check counts and seeds of a state.

    Args:
        counts: The numbers by name.

    Raises:
        ValueError: A number is not in [0, 2**63).
    """
    for name, count in counts.items():
        if not 0 <= count < 2**63:
            raise ValueError(f"{name} is {count}, expected a number in [0, 2**63)")


def norm(vector: np.ndarray) -> float:
    """Compute the Euclidean norm in float64.

    Unlike BLAS, it adds in the same order on any number of threads, so the result is reproducible bit for bit.

    Args:
        vector: Numbers of any shape.

    Returns:
        The square root of the sum of their squares.
    """
    return float(np.sqrt(np.sum(np.square(vector, dtype=np.float64))))
