"""Conversion between Gymnasium's observations and actions and arrays of a fixed dtype and shape.

Observations: A Box of uint8, float32 or float64 is unchanged. Other dtypes become float32 if it represents every value
between the bounds exactly (float16, bool, integers up to 2**24), otherwise float64, which is exact for integers up to
2**53. Any other space is flattened to a vector by gymnasium.spaces.flatten (Discrete and MultiDiscrete become one-hot,
Dict and Tuple are concatenated), and converted by the same rule. A shape of () becomes (1,).

Actions: Discrete is one action, counted from 0 whatever its start. MultiDiscrete and MultiBinary have one action for
each combination, at most 4096, with the last number varying fastest. A Box of floats is a vector of its values in
row-major order, with bounds in float32; actions are not clipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Space, spaces

_MAX_COMBINATIONS = 4096
_EXACT_IN_FLOAT32 = 2**24  # integers up to this
_DIRECT = (np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64))


@dataclass(frozen=True)
class Observations:
    """Encoder of observations.

    Attributes:
        dtype: Dtype of an encoded observation.
        shape: Shape of an encoded observation.
        encode: Function that returns the encoded array's bytes.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    encode: Callable[[Any], bytes]


@dataclass(frozen=True)
class Actions:
    """Decoder of actions.

    Attributes:
        count: If low is None, the number of discrete actions, which are in [0, count); otherwise the length of an
            action vector.
        decode: Function that converts an array, int32 [1] or float32 [count], to the argument of env.step.
        low: Nominal lower bounds of a vector, float32 [count]; None for discrete actions.
        high: Nominal upper bounds, likewise.
    """

    count: int
    decode: Callable[[np.ndarray], Any]
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def dtype(self) -> type:
        """Dtype of the array."""
        return np.int32 if self.low is None else np.float32


def observations(space: Space) -> Observations:
    """Return the encoder of a space's observations.

    Raises:
        TypeError: The space cannot be flattened to vectors of a fixed length.
    """
    flat = not isinstance(space, spaces.Box)
    try:
        box = spaces.flatten_space(space) if flat else space
    except NotImplementedError:  # a custom space
        box = None
    if not isinstance(box, spaces.Box) or np.prod(box.shape) == 0:
        raise TypeError(f"the observation space is {space}, expected one that can be flattened to a vector of numbers")
    dtype, shape = _dtype(box), box.shape

    def encode(value: Any) -> bytes:
        return _array(spaces.flatten(space, value) if flat else value, dtype, shape).tobytes()

    return Observations(dtype, shape or (1,), encode)


def actions(space: Space) -> Actions:
    """Return the decoder of a space's actions.

    Raises:
        TypeError: The action space is not supported.
    """
    if isinstance(space, spaces.Discrete):
        kind, start = np.dtype(space.dtype).type, int(space.start)
        return Actions(int(space.n), lambda action: kind(start + int(action[0])))
    if isinstance(space, spaces.MultiDiscrete):
        return _combinations(space, space.nvec, space.start)
    if isinstance(space, spaces.MultiBinary):
        return _combinations(space, np.full(space.shape, 2), 0)
    if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating) and np.prod(space.shape) > 0:
        low, high = (np.ravel(bound).astype(np.float32) for bound in (space.low, space.high))
        return Actions(low.size, lambda action: action.astype(space.dtype).reshape(space.shape), low, high)
    raise TypeError(
        f"the action space is {space}, expected Discrete, a Box of floats, MultiDiscrete or MultiBinary; "
        "a gymnasium.ActionWrapper can convert it"
    )


def _combinations(space: Space, sizes: np.ndarray, start: np.ndarray | int) -> Actions:
    """Return the decoder of an index to a combination of choices, one per dimension."""
    count = int(np.prod(sizes, dtype=object))
    if not 1 <= count <= _MAX_COMBINATIONS:
        raise TypeError(f"the action space {space} has {count} combinations, expected at most {_MAX_COMBINATIONS}")

    def decode(action: np.ndarray) -> np.ndarray:
        choices = np.reshape(np.unravel_index(action[0], sizes.ravel()), sizes.shape)
        return (start + choices).astype(space.dtype)

    return Actions(count, decode)


def _dtype(box: spaces.Box) -> np.dtype:
    if box.dtype in _DIRECT:
        return box.dtype
    if box.dtype == np.float16:
        return np.dtype(np.float32)
    largest = max(np.abs(bound.astype(np.float64)).max() for bound in (box.low, box.high))
    return np.dtype(np.float32 if largest <= _EXACT_IN_FLOAT32 else np.float64)


def _array(value: Any, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Convert a value to an array. ValueError, TypeError: the shape differs, or the conversion would lose data."""
    if isinstance(value, np.ndarray):
        array = value.astype(dtype, casting="same_kind", copy=False)
    else:
        array = np.asarray(value, dtype)
    if array.shape != shape:
        raise ValueError(f"the observation has shape {array.shape}, its space {shape}")
    return array
