"""Reads a pickle of NumPy's and JAX's arrays in dictionaries and tuples, in bounded memory, without running anything.

A pickle is a program. This one may name a few classes, and each stands for something harmless here: arrays are made by
us of the bytes that the file has, so that none is larger than the file.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from neuroevo.core.errors import UserError

EXPECTED = "expected a file that brax.io.model.save_params wrote"

_DTYPES = ("f2", "f4", "f8", "i4", "i8", "u1", "u4", "u8")
_STATISTICS = ("brax.training.acme.running_statistics", "RunningStatisticsState")
_IGNORED = (("brax.training.acme.running_statistics", "NormalizationMode"), ("brax.training.types", "UInt64"))
_RECONSTRUCT = [(module, "_reconstruct") for module in ("numpy.core.multiarray", "numpy._core.multiarray")]


class Statistics:
    """Brax's RunningStatisticsState; its attributes are what the file says."""

    mean: Any
    std: Any


class Array:
    """An array as a pickle makes one: empty at first."""

    array: np.ndarray | None = None


def array_of(value: object, dtype: type) -> np.ndarray:
    """The array that a file has in a place.

    Args:
        value: What is there.
        dtype: What it becomes.

    Raises:
        TypeError: Something else is there.
    """
    if not isinstance(value, Array) or value.array is None:
        raise TypeError(f"{type(value).__name__}, expected an array")
    return value.array.astype(dtype)


def read(data: bytes) -> Any:
    """Reads a pickle.

    Args:
        data: A file's content.

    Returns:
        What it holds, with Statistics, and an Array for each of NumPy's and JAX's.

    Raises:
        UserError: It names something else.
        Exception: It is damaged, of any kind.
    """
    for opcode, argument, _ in pickletools.genops(data):
        # Pickle has a list as long as the highest number, which takes four bytes to write.
        if "PUT" in opcode.name and isinstance(argument, int) and not 0 <= argument < len(data):
            raise ValueError(f"it numbers an object {argument} of at most {len(data)}")
    return _Unpickler(io.BytesIO(data), _known()).load()


def _known() -> dict[tuple[str, str], Any]:
    """What a pickle may name. Classes are made for each file, since a pickle may set their attributes."""

    class Dtype:
        """numpy.dtype."""

        def __init__(self, name: str, *_: object):
            if name not in _DTYPES:
                raise ValueError(f"an array is of {str(name)[:80]}, expected one of {', '.join(_DTYPES)}")
            self.name = name

        def __setstate__(self, state: Sequence[Any]) -> None:
            if state[1] not in ("<", "|"):
                raise ValueError(f"an array's bytes are in the order {str(state[1])[:80]}, expected <")

    class OwnArray(Array):
        """numpy.ndarray as _reconstruct makes it, and one of JAX."""

        def __init__(self, *_: object):
            pass

        def __setstate__(self, state: Sequence[Any]) -> None:
            _, shape, dtype, by_columns, content = state
            if not isinstance(dtype, Dtype) or not isinstance(content, bytes):
                raise ValueError("an array has no dtype or no bytes")
            values = np.frombuffer(content, dtype.name)
            if any(type(length) is not int or length < 0 for length in shape) or math.prod(shape) != values.size:
                raise ValueError(f"an array has shape {shape} and {values.size} numbers")
            self.array = values.reshape(shape, order="F" if by_columns else "C")

    class Anything:
        """Something that is not needed."""

        def __init__(self, *_: object):
            pass

    class Own(Statistics):
        """Statistics of this file."""

    def of_jax(make: object, arguments: object, state: Sequence[Any], _: object) -> Array:
        made = OwnArray()
        made.__setstate__(state)
        return made

    return {
        _STATISTICS: Own,
        **dict.fromkeys(_IGNORED, Anything),
        ("flax.core.frozen_dict", "FrozenDict"): dict,
        ("jax._src.array", "_reconstruct_array"): of_jax,
        ("numpy", "ndarray"): OwnArray,
        ("numpy", "dtype"): Dtype,
        **dict.fromkeys(_RECONSTRUCT, OwnArray),
    }


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Mapping[tuple[str, str], Callable[..., Any]]):
        super().__init__(file)
        self._known = known

    def find_class(self, module: str, name: str) -> Any:
        """What a pickle may name."""
        if (module, name) not in self._known:
            raise UserError(f"the file asks for {module}.{name}, which no policy of Brax needs; {EXPECTED}")
        return self._known[module, name]
