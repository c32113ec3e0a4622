"""Calls of the ops of populations, each compared with the reference backend through the C interface."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from neuroevo.core.genome import GAUSSIAN, LowRank
from neuroevo.native.population import Population as Like
from tests.support.fuzz_ops.calls import Call, Caller
from tests.support.fuzz_ops.networks import networks
from tests.support.fuzz_ops.values import FLOATS, NOT_FINITE, int64, strings

_SIZES = (0, -1, 2**24 + 1, 2**40, -(2**63), 2**62)


def make(caller: Caller, rows: int) -> Population | None:
    """Makes a population, or tries to."""
    draw = caller.draw
    texts, dtype, rank, floats = networks(draw), draw.choice(("float32", "float32", "int8")), 0, -1
    if draw.chance(0.3) and dtype == "float32":
        rank, floats = draw.choice((1, 2, 5)), draw.randint(1, rows)
    elif draw.chance(0.5) and dtype == "int8":
        floats = draw.randint(0, rows)
    backend = draw.choice(("cpu", "cpu", "cpu", "cpu", "reference"))
    wrong = []
    match draw.choice([""] * 8 + ["rows", "rank", "floats", "backend", "int8"]):
        case "rows":
            rows = draw.choice(_SIZES)
        case "rank":
            rank = draw.choice((-1, 65, 2**31 - 1, -(2**31), 2**31, -(2**63)))
            wrong = [str(rank), "network"]  # of the other backend: LowRank() refuses it
        case "floats":
            floats = draw.choice((-2, rows + 1, 2**40, -(2**63)))
        case "backend":
            backend = draw.choice(("", "gpu", "CPU", "cpu ", "x" * 5000))
        case "int8":
            rank, dtype, wrong = 2, "int8", ["rank is 2", "network"]
    attributes = {"rows": rows, "backend": backend, "dtype": {"int8": tf.int8}.get(dtype, tf.float32)}
    attributes |= {"float_rows": floats, "rank": rank}
    call = Call("population_make", {}, {"networks": strings(texts)}, attributes, wrong=wrong)
    made: list[Like] = []

    def same() -> None:
        # Unless the backend is what is wrong, the other one computes with the same bits.
        other = "reference" if backend == "cpu" else backend
        made.append(Like(texts, rows, other, dtype, floats, LowRank(rank) if rank else GAUSSIAN))

    handle = caller.run(call, same)
    return None if handle is None else Population(handle, made[0], rows, rows if floats < 0 else floats, rank)


class Population:
    """A population and its like.

    handle: for the ops. rows: how many. filled: rows that hold something.
    """

    def __init__(self, handle: tf.Tensor, like: Like, rows: int, float_rows: int, rank: int):
        self.handle, self.rows, self._like = handle, rows, like
        self.filled: set[int] = set()
        self._float_rows = float_rows  # those from here on keep no float32 weights
        self._weight_rows = float_rows if rank else rows  # those from here on are members
        self._networks, self._width = len(like.dimensions), max(like.dimensions)
        self._finite = True  # all weights and states; of others backends need not compute the same
        self._seen: np.ndarray | None = None

    def step(self, caller: Caller, own: Sequence[int]) -> None:
        """Makes a random call for some of these rows, which no other thread uses."""
        kinds: dict[Callable[[Caller, Sequence[int]], Any], int] = {
            self._dimensions: 1,
            self._init: 3,
            self._assign: 3,
            self._read: 3,
            self._perturb: 5,
            self._set_reference: 1,
            self._prepare: 3,
            self._forward: 5,
            self._forward_slots: 6,
            self._clear_states: 2,
        }
        caller.draw.choices(list(kinds), list(kinds.values()))[0](caller, own)

    def _run(self, caller: Caller, op: str, same: Callable[[], Any] | None, **given: Any) -> Any:
        return caller.run(Call(op, {"handle": self.handle}, **given), same)

    def _usable(self, caller: Caller, own: Sequence[int]) -> list[int]:
        """Rows that are filled, mostly."""
        filled = [row for row in own if row in self.filled]
        return caller.draw.indices(filled if filled and caller.draw.chance(0.95) else own, 0.04)

    def _fillable(self, caller: Caller, own: Sequence[int]) -> list[int]:
        holding = [row for row in own if row < self._weight_rows]
        return caller.draw.indices(holding if caller.draw.chance(0.95) else own, 0.05)

    def _networks_of(self, caller: Caller, rows: Sequence[int]) -> np.ndarray:
        numbers = np.array([caller.draw.randrange(self._networks) for _ in rows], np.int32)
        if len(numbers) and caller.draw.chance(0.03):
            numbers[0] = caller.draw.choice((-1, self._networks, 2**31 - 1, -(2**31)))
        return numbers

    def _dimensions(self, caller: Caller, own: Sequence[int]) -> None:
        self._run(caller, "population_dimensions", lambda: (int64(self._like.dimensions),))

    def _init(self, caller: Caller, own: Sequence[int]) -> None:
        rows = self._fillable(caller, own)
        numbers, seeds = self._networks_of(caller, rows), int64(caller.draw.seeds(len(rows)))
        same = lambda: self._like.init(rows, numbers, seeds.view(np.uint64))  # noqa: E731
        inputs = {"rows": int64(rows), "networks": numbers, "seeds": seeds}
        self._run(caller, "population_init", same, inputs=inputs, paired=tuple(inputs))
        if caller.succeeded:
            self.filled.update(rows)

    def _assign(self, caller: Caller, own: Sequence[int]) -> None:
        rows = self._fillable(caller, own)
        numbers, thetas = self._networks_of(caller, rows), caller.draw.floats(len(rows), self._width)
        same = lambda: self._like.assign(rows, numbers, thetas)  # noqa: E731
        inputs = {"rows": int64(rows), "networks": numbers, "thetas": thetas}
        # Of no rows the weights may have any width.
        self._run(caller, "population_assign", same, inputs=inputs, paired=tuple(inputs), lenient=not rows)
        if caller.succeeded:
            self.filled.update(rows)
            self._note(thetas)

    def _read(self, caller: Caller, own: Sequence[int]) -> None:
        rows = self._usable(caller, own)
        same = lambda: self._if_finite(self._like.read(rows))  # noqa: E731
        self._run(caller, "population_read", same, inputs={"rows": int64(rows)})

    def _note(self, numbers: np.ndarray) -> None:
        if not _small(numbers):
            self._finite = False

    def _if_finite(self, numbers: np.ndarray) -> tuple[np.ndarray | None]:
        return (numbers if self._finite else None,)

    def _perturb(self, caller: Caller, own: Sequence[int]) -> None:
        draw = caller.draw
        dst = self._usable(caller, own) if draw.chance(0.5) else draw.indices(own, 0.04)
        dst = dst + [row for row in dst if draw.chance(0.1)]
        sources = [row for row in own if row in self.filled and row < self._weight_rows] or list(own)
        src = [draw.choice(sources if draw.chance(0.98) else [*dst, -1, 2**40]) for _ in dst]
        if draw.chance(0.2):  # chains
            src = [src[0], *dst[:-1]] if dst else []
        seeds = int64(draw.seeds(len(dst)))
        scales = np.array([draw.choice((0.1, 1.0, -0.5, 0.0)) for _ in dst], np.float32)
        if len(scales) and draw.chance(0.05):
            scales[-1] = draw.choice(FLOATS + NOT_FINITE)
        spreads = int64([-1] * len(dst))
        if draw.chance(0.3):
            still = [row for row in sources if row not in dst]
            spreads = int64([draw.choice([-1, *(still if draw.chance(0.95) else own)]) for _ in dst])
            if len(spreads) and draw.chance(0.03):
                spreads[0] = draw.choice((-2, self.rows, 2**40, -(2**63)))
        same = lambda: self._like.perturb(dst, src, seeds.view(np.uint64), scales, spreads)  # noqa: E731
        inputs = {"dst": int64(dst), "src": int64(src), "seeds": seeds, "scales": scales, "spreads": spreads}
        self._run(caller, "population_perturb", same, inputs=inputs, paired=tuple(inputs))
        if caller.succeeded:
            self.filled.update(dst)
            self._note(scales)
            self._note(self._like.read([row for row in dst if row < self._float_rows]))  # spreads make them grow

    def _observations(self, caller: Caller, count: int) -> np.ndarray:
        """Random ones; often what was seen before with few changes, of which a backend may compute these alone."""
        draw, shape = caller.draw, self._like.observation_shape
        seen = self._seen
        if seen is not None and len(seen) == count and draw.chance(0.5):
            seen = seen.copy()
            if seen.size and draw.chance(0.8):
                seen.flat[draw.randrange(seen.size)] = draw.choice((0, 1, 255))
        elif self._like.observation_dtype == np.uint8:
            seen = draw.bytes_of(count, *shape)
        else:
            seen = draw.floats(count, *shape)
        if caller.alone:
            self._seen = seen
        return seen

    def _set_reference(self, caller: Caller, own: Sequence[int]) -> None:
        observations = self._observations(caller, caller.draw.choice((0, 1, 2, 7)))
        if caller.alone:  # it is for all rows
            same = lambda: self._like.set_reference(observations)  # noqa: E731
            self._run(caller, "population_set_reference", same, inputs={"observations": observations})
            if caller.succeeded:
                self._note(observations)

    def _prepare(self, caller: Caller, own: Sequence[int]) -> None:
        rows = self._usable(caller, own)
        self._run(caller, "population_prepare", lambda: self._like.prepare(rows), inputs={"rows": int64(rows)})

    def _forward(self, caller: Caller, own: Sequence[int]) -> None:
        rows = self._usable(caller, own)
        rows = rows + [row for row in rows if caller.draw.chance(0.2)]
        self._evaluate(caller, "population_forward", rows, None)

    def _forward_slots(self, caller: Caller, own: Sequence[int]) -> None:
        rows, states = self._usable(caller, own), list(own)
        caller.draw.shuffle(states)
        states = states[: len(rows)]
        if states and caller.draw.chance(0.04):
            states[0] = caller.draw.choice((-1, self.rows, 2**40, states[-1]))
        self._evaluate(caller, "population_forward_slots", rows[: len(states)], states)

    def _evaluate(self, caller: Caller, op: str, rows: list[int], states: list[int] | None) -> None:
        like, observations = self._like, self._observations(caller, len(rows))
        finite = _small(observations)

        def same() -> tuple[np.ndarray | None]:
            outputs = like.forward(rows, observations, like.outputs, states)
            return (outputs if self._finite and finite else None,)

        inputs = {"rows": int64(rows), "observations": observations}
        inputs |= {} if states is None else {"slots": int64(states)}
        self._run(caller, op, same, inputs=inputs, paired=tuple(inputs))
        if like.recurrent:
            self._note(observations)

    def _clear_states(self, caller: Caller, own: Sequence[int]) -> None:
        states = caller.draw.indices(own, 0.05)
        same = lambda: self._like.clear_states(states)  # noqa: E731
        self._run(caller, "population_clear_states", same, inputs={"states": int64(states)})


def _small(numbers: np.ndarray) -> bool:
    return bool(np.all(np.abs(numbers.astype(np.float64)) < 1e6))
