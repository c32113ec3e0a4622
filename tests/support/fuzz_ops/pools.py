"""Calls of the ops of environments, each compared with the C interface's pool of the same environments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from neuroevo.core.env_spec import EnvSpec
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
from tests.support.fuzz_ops.calls import Call, Caller
from tests.support.fuzz_ops.values import NOT_FINITE, Draw, int64, strings

GAMES = ("HardMaze-v0", "HardMaze-v0", "InvertedPendulum-v5", "InvertedPendulum-v5", "freeway")
_SIZES = (0, -1, 2**16 + 1, 2**31, 2**40, -(2**63))
_DTYPES = {np.dtype(np.uint8): tf.uint8, np.dtype(np.float32): tf.float32, np.dtype(np.float64): tf.float64}


def make(caller: Caller, slots: int, name: str) -> Pool | None:
    """Makes a pool, or tries to."""
    draw, recipe = caller.draw, registry.resolve(name)
    family, options = recipe.family, list(recipe.options)
    match draw.choice(["", "", "", "", "family", "option", "twice", "slots"]):
        case "family":
            family = draw.choice(["", "atary", "hard maze", family + "\0", "x" * 5000])
        case "option":
            options.insert(draw.randrange(len(options) + 1), draw.choice(["", "=", "x=1", "max_steps=nan", "é=\0"]))
        case "twice":
            options *= 2
        case "slots":
            slots = draw.choice(_SIZES)
    call = Call("env_pool_make", {}, {"options": strings(options)}, {"family": family, "slots": slots})
    made: list[EnvPool] = []

    def same() -> None:
        made.append(EnvPool(EnvSpec(name, family, tuple(options)), slots))

    # C's texts end at a zero byte, so that the C interface does not see what comes after it.
    unlike = "\0" in family or any("\0" in option for option in options)
    if unlike:
        call.wrong += ["option", "family"]
    handle = caller.run(call, None if unlike else same)
    return None if handle is None else Pool(handle, made[0])


class Pool:
    """A pool and its like.

    handle: for the ops. live: slots with running episodes.
    """

    def __init__(self, handle: tf.Tensor, like: EnvPool):
        self.handle, self._like = handle, like
        self.live: set[int] = set()
        self._normalizers: dict[int, set[int]] = {}  # the numbers of those that each thread has set
        self.discrete = like.action_dtype == np.int32
        self._values = int(np.prod(like.observation_shape))

    def step(self, caller: Caller, own: Sequence[int]) -> None:
        """Makes a random call for some of these slots, which no other thread changes."""
        draw = caller.draw
        if draw.shared and draw.chance(0.05):
            return self._look_at_any(caller)
        kinds: dict[Callable[[Caller, Sequence[int]], Any], int] = {
            self._spec: 1,
            self._reset: 4,
            self._actions: 2,
            self._step: 8,
            self._observation: 3,
            self._normalized: 2,
            self._behavior: 2,
            self._render: 1,
            self._set_normalizer: 1,
            self._drop_normalizers: 1,
            self._record: 1,
        }
        draw.choices(list(kinds), list(kinds.values()))[0](caller, own)
        return None

    def _look_at_any(self, caller: Caller) -> None:
        """Of slots that may be in use by other threads, whose calls then may be refused."""
        attributes = {"shape": self._like.behavior_shape, "dtype": _DTYPES[self._like.behavior_dtype]}
        self._run(caller, "env_behavior", None, inputs={"slots": int64(range(4))}, attributes=attributes)

    def _run(self, caller: Caller, op: str, same: Callable[[], Any] | None, **given: Any) -> Any:
        call = Call(op, {"handle": self.handle}, **given)
        return caller.run(call, same)

    def _spec(self, caller: Caller, own: Sequence[int]) -> None:
        like = self._like
        texts = [np.array(dtype.name.encode(), object) for dtype in (like.observation_dtype, like.action_dtype)]
        behavior = np.array(like.behavior_dtype.name.encode(), object)
        expected = (texts[0], int64(like.observation_shape), texts[1], int64(like.num_actions), int64(like.frame_skip))
        rest = None, behavior, int64(like.behavior_shape), int64(like.render_shape), like.action_low, like.action_high
        self._run(caller, "env_pool_spec", lambda: (*expected, *rest))

    def _reset(self, caller: Caller, own: Sequence[int]) -> None:
        draw = caller.draw
        slots = draw.indices(own, 0.1)
        frames = [draw.choice((0, 1, 9, 40, 2**40)) for _ in slots]
        if frames and draw.chance(0.05):
            frames[-1] = draw.choice((-1, -(2**63)))
        known = sorted(self._normalizers.get(caller.thread, ()))
        numbers = [draw.choice((-1, *known)) for _ in slots] if draw.chance(0.5) else []
        if numbers and draw.chance(0.1):
            numbers[0] = draw.choice((-2, 77, -(2**40)))
        self.reset(caller, slots, draw.seeds(len(slots)), frames, numbers)

    def reset(self, caller: Caller, slots: list[int], seeds: list[int], frames: list[int], numbers: list[int]) -> bool:
        """Whether the slots were reset."""
        arrays = {"slots": slots, "seeds": seeds, "max_frames": frames, "normalizers": numbers}

        def same() -> None:
            self._like.reset(slots, np.array(seeds, np.int64).view(np.uint64), frames, numbers or None)

        inputs = {name: int64(values) for name, values in arrays.items()}
        self._run(caller, "env_reset", same, inputs=inputs, paired=("slots", "seeds", "max_frames"))
        if caller.succeeded:
            self.live.update(slots)
        return caller.succeeded

    def actions_for(
        self, draw: Draw, slots: Sequence[int], bad: float, odd: Sequence[float] = (*NOT_FINITE, 3e38)
    ) -> np.ndarray:
        """Random ones; with a chance of `bad` one that there is not, or that is odd."""
        n = self._like.num_actions
        if not self.discrete:
            actions = draw.floats(len(slots), n, extreme=0)
            if actions.size and draw.chance(bad):
                actions.flat[0] = draw.choice(odd)
            return actions
        actions = np.array([draw.randrange(n) for _ in slots], np.int32)
        if len(actions) and draw.chance(bad):
            actions[-1] = draw.choice((n, -1, 2**31 - 1, -(2**31)))
        return actions

    def _step(self, caller: Caller, own: Sequence[int]) -> None:
        live = [slot for slot in own if slot in self.live]
        slots = caller.draw.indices(live if live and caller.draw.chance(0.9) else own, 0.05)
        self.step_slots(caller, slots, self.actions_for(caller.draw, slots, 0.05))

    def step_slots(self, caller: Caller, slots: list[int], actions: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Rewards and dones; None where the call was refused."""
        inputs = {"slots": int64(slots), "actions": actions}
        same = lambda: (*self._like.step(slots, actions), None)  # noqa: E731 - which has no truncations
        result = self._run(caller, "env_step", same, inputs=inputs, paired=("slots", "actions"))
        if result is None:
            return None
        rewards, dones = result.rewards.numpy(), result.dones.numpy()
        self.live.difference_update(slot for slot, done in zip(slots, dones, strict=True) if done)
        return rewards, dones

    def _actions(self, caller: Caller, own: Sequence[int]) -> None:
        draw, like = caller.draw, self._like
        width = like.num_actions * draw.choice((1, 1, 1, 2, 3))
        width = draw.choice((0, width + 1)) if draw.chance(0.1) else width
        outputs = draw.floats(draw.randrange(4), width, extreme=0.2)
        call = Call("env_actions", {"handle": self.handle}, {"outputs": outputs}, {"T": like.action_dtype.name})
        if draw.chance(0.05):
            call.attributes["T"] = "float32" if self.discrete else "int32"
            call.wrong.append("'T'")
        caller.run(call, lambda: (like.actions(outputs),))

    def _copies(self, caller: Caller, own: Sequence[int], op: str, shape: Any, dtype: Any, copy: Any) -> None:
        draw = caller.draw
        slots = draw.indices(own, 0.1)
        call = Call(op, {"handle": self.handle}, {"slots": int64(slots)})
        if shape is not None:
            call.attributes["shape"] = shape if draw.chance(0.9) else draw.choice((None, [None] * len(shape)))
        if dtype is not None:
            call.attributes["dtype"] = _DTYPES[dtype]
        if draw.chance(0.08) and shape:
            odd = draw.choice(([*shape, 1], list(shape)[:-1], [2**40] * len(shape), [0] * len(shape), [None, *shape]))
            call.attributes["shape"] = odd
            call.wrong += ["'shape'", "is too large"]
        elif draw.chance(0.05) and dtype is not None:
            call.attributes["dtype"] = draw.choice([each for name, each in _DTYPES.items() if name != dtype])
            call.wrong += ["'dtype'"]
        call.lenient = bool(call.wrong)
        caller.run(call, lambda: (copy(slots),))

    def _observation(self, caller: Caller, own: Sequence[int]) -> None:
        like = self._like
        self._copies(caller, own, "env_observation", like.observation_shape, like.observation_dtype, like.observe)

    def _normalized(self, caller: Caller, own: Sequence[int]) -> None:
        like = self._like
        self._copies(caller, own, "env_normalized_observation", like.observation_shape, None, like.observe_normalized)

    def _behavior(self, caller: Caller, own: Sequence[int]) -> None:
        like = self._like
        self._copies(caller, own, "env_behavior", like.behavior_shape, like.behavior_dtype, like.behavior)

    def _render(self, caller: Caller, own: Sequence[int]) -> None:
        self._copies(caller, own, "env_render", None, None, self._like.render)

    def _set_normalizer(self, caller: Caller, own: Sequence[int]) -> None:
        draw, known = caller.draw, self._normalizers.setdefault(caller.thread, set())
        number = 100 * caller.thread + draw.choice((0, 1, 2, 2**40))
        if draw.chance(0.1):
            number = draw.choice((-1, -(2**63)))
        mean, std = np.zeros(self._values), np.full(self._values, draw.choice((1.0, 0.5)))
        if draw.chance(0.2):
            draw.choice((mean, std))[-1] = draw.choice(NOT_FINITE)
        elif draw.chance(0.2):
            std[0] = draw.choice((-1.0, 0.0, -0.0))
        inputs = {"number": int64(number), "mean": mean, "std": std}
        same = lambda: self._like.set_normalizer(number, mean, std)  # noqa: E731
        self._run(caller, "env_set_normalizer", same, inputs=inputs, paired=("mean", "std"))
        if caller.succeeded:
            known.add(number)

    def _drop_normalizers(self, caller: Caller, own: Sequence[int]) -> None:
        draw, known = caller.draw, self._normalizers.setdefault(caller.thread, set())
        numbers = draw.some(sorted(known))
        if draw.chance(0.2):
            numbers.append(draw.choice((-1, 99, -(2**63), *numbers)))
        same = lambda: self._like.drop_normalizers(numbers)  # noqa: E731
        self._run(caller, "env_drop_normalizers", same, inputs={"numbers": int64(numbers)})
        if caller.succeeded:
            known.difference_update(numbers)

    def _record(self, caller: Caller, own: Sequence[int]) -> None:
        every, samples = caller.draw.choice(((0, 1), (2, 3), (-1, 1), (1, 0), (1, 2**62), (2**62, 1), (0, -5)))
        inputs = {"every": int64(every), "samples": int64(samples)}
        if caller.alone:  # it is for all slots
            same = lambda: self._like.record_behaviors(every, samples)  # noqa: E731
            self._run(caller, "env_record_behaviors", same, inputs=inputs)
