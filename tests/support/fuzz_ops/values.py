"""Random arguments of op calls: those in range, and those that no op should take."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

INTEGERS = (0, 1, -1, -2, 3, 255, 2**31 - 1, -(2**31), 2**31, 2**32 + 1, 2**40, -(2**40), 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 3.4e38, -3.4e38)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))
OTHER_DTYPES = (np.int32, np.int64, np.float32, np.float64, np.uint8, np.bool_, np.object_)


class Draw(random.Random):
    """Random choices that follow from a seed alone.

    shared: whether the first numbers belong to other threads, so that none of them may be where it is not expected.
    """

    shared = False

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def some(self, values: Sequence[int]) -> list[int]:
        """Different ones of them, in any order; often few, sometimes none."""
        count = self.choice((0, 1, 1, 1, 2, 3, len(values)))
        return self.sample(list(values), min(count, len(values)))

    def seeds(self, count: int) -> list[int]:
        return [self.choice(INTEGERS) if self.chance(0.1) else self.getrandbits(63) for _ in range(count)]

    def indices(self, values: Sequence[int], bad: float) -> list[int]:
        """Different ones of them; with a chance of `bad`, one is out of range or given twice."""
        chosen = self.some(values)
        if self.chance(bad):
            odd = [each for each in (*INTEGERS, len(values)) if not self.shared or not 0 <= each < 1000]
            twice = chosen and self.chance(0.3)
            chosen.insert(self.randrange(len(chosen) + 1), self.choice(chosen if twice else odd))
        return chosen

    def floats(self, *shape: int, extreme: float = 0.02) -> np.ndarray:
        """float32 of that shape, rarely with a number that is at the limits or not finite."""
        numbers = np.random.default_rng(self.getrandbits(32)).standard_normal(shape).astype(np.float32)
        if numbers.size and self.chance(extreme):
            numbers.flat[self.randrange(numbers.size)] = self.choice(FLOATS + NOT_FINITE)
        return numbers

    def bytes_of(self, *shape: int) -> np.ndarray:
        """uint8 of that shape."""
        return np.frombuffer(self.randbytes(int(np.prod(shape))), np.uint8).reshape(shape)


def int64(values: Sequence[int] | int) -> np.ndarray:
    return np.array(values, np.int64)


def strings(texts: Sequence[str]) -> np.ndarray:
    return np.array(texts, object)


def text_of(shape: Sequence[int]) -> str:
    """As TensorFlow writes it."""
    return "[" + ",".join(map(str, shape)) + "]"


def of_another_shape(draw: Draw, array: np.ndarray, resize: bool) -> np.ndarray:
    """The array with another number of dimensions or, if it may be resized, with another length."""
    if resize and array.ndim > 0 and draw.chance(0.6):
        if len(array) and draw.chance(0.5):
            return array[:-1]
        return np.concatenate([array, array[:1] if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)])
    if array.ndim > 0 and array.size and draw.chance(0.3):
        return array.reshape(-1)[0].reshape(())
    return array.reshape((*array.shape, 1)) if draw.chance(0.5) else array[None]


def of_another_dtype(draw: Draw, array: np.ndarray) -> np.ndarray:
    """The array's shape with values of another type; object stands for strings."""
    dtype = draw.choice([each for each in OTHER_DTYPES if array.dtype != each])
    return np.full(array.shape, "1", object) if dtype == np.object_ else np.zeros(array.shape, dtype)
