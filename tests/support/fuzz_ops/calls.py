"""Calls of ops: execution, logging and comparison with the expected result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf

from neuroevo.core.errors import NativeError
from neuroevo.rollout.tensorflow.ops import core_words, load_ops
from tests.support.fuzz_ops.last_call import LastCalls
from tests.support.fuzz_ops.values import Draw, of_another_dtype, of_another_shape, text_of

REFUSALS = (  # what an op may answer; all others are of something that went wrong inside
    tf.errors.InvalidArgumentError,
    tf.errors.NotFoundError,
    tf.errors.CancelledError,
    tf.errors.ResourceExhaustedError,
    ValueError,  # of what TensorFlow itself finds before it calls the op
    TypeError,
)

_NAMES = {"float32": "float", "float64": "double"}  # of dtypes in messages of TensorFlow


class Wrong(AssertionError):
    """Error for an op with incorrect behavior."""


@dataclass
class Call:
    """An op with its arguments.

    handles: inputs that are handles. inputs: the others, arrays. paired: of these, the ones whose length others imply.
    wrong: words, one of which the message must have, if the arguments are such that no op may take them. lenient: some
    array may have any shape, or enough is wrong already.
    """

    op: str
    handles: dict[str, tf.Tensor]
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    paired: Sequence[str] = ()
    wrong: list[str] = field(default_factory=list)
    lenient: bool = False

    def make(self) -> Any:
        """Calls the op."""
        arrays = {
            name: tf.constant(array, tf.string if array.dtype.kind == "O" else None)
            for name, array in self.inputs.items()
        }
        made = getattr(load_ops(), self.op)(**self.handles, **arrays, **self.attributes)
        return None if isinstance(made, tf.Operation) else made  # of an op without outputs in a graph

    def spoil(self, draw: Draw) -> None:
        """Gives one of the arrays another shape or dtype."""
        names = [name for name, array in self.inputs.items() if array.dtype.kind != "O"]
        if not names:
            return
        name = draw.choice(names)
        array = self.inputs[name]
        if draw.chance(0.3):
            self.inputs[name] = of_another_dtype(draw, array)
            dtype = self.inputs[name].dtype
            self.wrong += ["string"] if dtype.kind == "O" else [dtype.name, _NAMES.get(dtype.name, dtype.name)]
        else:
            self.inputs[name] = of_another_shape(draw, array, name in self.paired)
            shape = self.inputs[name].shape
            self.wrong += [text_of(shape), "rank", "Dimensions must be equal", "values"]
            self.wrong += [f"[{shape[0]}," if shape else "[]"]  # where another array should be as long


def _in_graph(call: Call) -> Any:
    """Calls the op within a function."""
    return tf.function(call.make, autograph=False).get_concrete_function()()


@dataclass
class Caller:
    """Makes a thread's calls.

    others: handles by the first word of the ops that take them. alone: whether no other thread makes calls. counts: of
    calls by the op and what came of them. succeeded: whether the last one did.
    """

    draw: Draw
    thread: int
    last_calls: LastCalls
    others: Mapping[str, tf.Tensor]
    alone: bool = True
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: int = 0
    where: str = ""
    succeeded: bool = False

    def note(self, op: str, given: Any) -> None:
        """Says what is called next."""
        self.calls += 1
        self.last_calls.write(self.thread, self.calls, (self.where, op, given))

    def count(self, op: str, succeeded: bool) -> None:
        """Says what came of it."""
        self.succeeded = succeeded
        self.counts[op, "succeeded" if succeeded else "refused"] += 1

    def run(self, call: Call, same: Callable[[], Any] | None = None) -> Any:
        """Makes a call, sometimes with spoiled arguments, and compares it with what does the same elsewhere.

        same: called unless the call was spoiled; the op must be refused with the same words where this raises.

        Returns:
            What the op gave; None where it was refused.
        """
        if self.draw.chance(0.08) and not call.lenient:
            call.spoil(self.draw)
        elif self.draw.chance(0.02) and call.handles:
            name = self.draw.choice(list(call.handles))
            kind = "env" if name == "env_pool" else call.op.partition("_")[0]
            call.handles[name] = self.others[self.draw.choice([each for each in self.others if each != kind])]
            call.wrong.append(f"'{name}'")
        graph = self.draw.chance(0.005)
        self.note(call.op, call.inputs | call.attributes)
        try:
            result = _in_graph(call) if graph else call.make()
        except REFUSALS as error:
            words = core_words(error) if isinstance(error, tf.errors.OpError) else str(error)
            self.count(call.op, False)
            if not words.strip():
                raise Wrong(f"{self._what(call)}: refused without a word: {error!r}") from error
            self._judge_refusal(call, words, same)
            return None
        except tf.errors.OpError as error:
            raise Wrong(f"{self._what(call)}: {error!r}") from error
        self.count(call.op, True)
        if call.wrong:
            raise Wrong(f"{self._what(call)}: taken, but expected to be refused with one of {call.wrong}")
        if same is not None:
            try:
                expected = same()
            except (NativeError, ValueError) as error:
                raise Wrong(f"{self._what(call)}: taken, but elsewhere refused: {error}") from error
            self._compare(call, result, expected)
        return result

    def _judge_refusal(self, call: Call, words: str, same: Callable[[], Any] | None) -> None:
        """The message must be about what is wrong, or be the one that there is elsewhere."""
        if any(each in words for each in call.wrong) or "in use by another call" in words:
            return
        if same is None and not call.wrong:
            return
        expected = f"one of {call.wrong} in it"
        try:
            if same is not None:
                same()
                expected = "it to be taken, as elsewhere"
        except (NativeError, ValueError) as error:
            if str(error) == words:
                return
            expected = f"{str(error)!r}, as elsewhere"
        raise Wrong(f"{self._what(call)}: refused with {words!r}, expected {expected}")

    def _compare(self, call: Call, result: Any, expected: Any) -> None:
        if expected is None:
            return
        results = result if isinstance(result, tuple) else (result,)
        for index, (got, wanted) in enumerate(zip(results, expected, strict=True)):
            if wanted is not None and not equal(got.numpy(), wanted):
                raise Wrong(f"{self._what(call)}: output {index} is {got.numpy()!r}, expected {wanted!r}")

    def _what(self, call: Call) -> str:
        return f"{self.where}, call {self.calls} of thread {self.thread}: {call.op} {call.inputs} {call.attributes}"


def equal(got: Any, wanted: Any) -> bool:
    """Whether they are of one dtype and shape and the same numbers; NaN is like NaN."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.dtype.kind == "f":
        return got.dtype == wanted.dtype and np.array_equal(got, wanted, equal_nan=True)
    return np.array_equal(got, wanted)
