"""Calls of the ops of episode queues, each compared with a Python model of the queue."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.cancellable import cancellable
from tests.support.fuzz_ops import pools
from tests.support.fuzz_ops.calls import Call, Caller, Wrong
from tests.support.fuzz_ops.rows import Rows
from tests.support.fuzz_ops.submissions import Episode, Genome, submission
from tests.support.fuzz_ops.values import FLOATS, NOT_FINITE, int64

_SIZES = (0, -1, 2**16 + 1, 2**40, -(2**63), 2**63 - 1)
_PATIENCE = 60.0  # seconds; far more than any call takes


@dataclass
class Playing:
    """What a slot plays: the row of its weights, the rewards so far, and why the episode was broken off."""

    episode: Episode
    row: int
    total: float = 0.0
    steps: int = 0
    failure: str = ""


def make(caller: Caller, lanes: int, slots: int, first_row: int) -> Queue | None:
    """Makes a queue, or tries to."""
    draw, wrong = caller.draw, []
    sizes = {"lanes": lanes, "slots_per_lane": slots, "first_row": first_row}
    if draw.chance(0.15):
        name = draw.choice(list(sizes))
        sizes[name] = draw.choice((-1, 2**41, -(2**63))) if name == "first_row" else draw.choice(_SIZES)
        wrong = [str(sizes[name])]
    handle = caller.run(Call("episode_queue_make", {}, attributes=sizes, wrong=wrong))
    return None if handle is None else Queue(handle, lanes, slots, first_row)


@tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.resource), tf.TensorSpec([], tf.int64)])
def _take(handle: tf.Tensor, lane: tf.Tensor) -> Any:
    return load_ops().episode_queue_take(handle, lane)


class Queue:
    """A queue and its model.

    handle: for the ops. pool: whose slots are those of the queue; None until there is one.
    """

    def __init__(self, handle: tf.Tensor, lanes: int, slots: int, first_row: int):
        self.handle, self.lanes, self.slots, self.first_row = handle, lanes, slots, first_row
        self.pool: pools.Pool | None = None
        self.genomes: dict[int, Genome] = {}
        self.next_id = 0
        self.closed = False
        self._closed_lanes: set[int] = set()
        self._queued: dict[int, deque[Episode]] = defaultdict(deque)
        self._live: dict[int, Playing] = {}
        self._stepped: dict[int, tuple[list[int], np.ndarray, np.ndarray]] = {}  # by lane, what was not booked yet
        self._rows = Rows(first_row)
        self._results: list[tuple[int, float, int, str]] = []
        self._total_steps = 0

    def step(self, caller: Caller) -> None:
        """Makes a random call."""
        kinds: dict[Callable[[Caller], Any], int] = {
            self._submit: 4,
            self._take: 5,
            self._play: 6,
            self._put: 4,
            self._results_: 2,
        }
        if caller.draw.chance(0.005):
            return self.close(caller)
        caller.draw.choices(list(kinds), list(kinds.values()))[0](caller)
        return None

    def close(self, caller: Caller) -> None:
        """Closes it, which can be done twice."""
        caller.run(Call("episode_queue_close", {"handle": self.handle}))
        if caller.succeeded:
            self.closed = True
            self._queued.clear()

    def _submit(self, caller: Caller) -> None:
        given = submission(caller.draw, self.genomes, self.next_id, self.first_row)
        wrong = [*given.wrong, *(["closed"] if self.closed else [])]
        call = self._call("episode_queue_submit", given.arrays, wrong, paired=given.paired)
        caller.run(call, None if wrong else lambda: None)
        if caller.succeeded:
            self.next_id += len(given.episodes) + len(given.genomes)
            self.genomes.update({genome.id: genome for genome in given.genomes})
            if given.episodes:
                self._queued[given.priority].extend(given.episodes)

    def _lane(self, caller: Caller) -> int:
        return caller.draw.randrange(self.lanes)

    def _slots_of(self, lane: int) -> range:
        return range(lane * self.slots, (lane + 1) * self.slots)

    def _live_of(self, lane: int) -> list[int]:
        return [slot for slot in self._slots_of(lane) if slot in self._live]

    def _call(self, op: str, inputs: dict[str, np.ndarray], wrong: Sequence[str] = (), **more: Any) -> Call:
        # One thing wrong is enough to know what the message is about.
        return Call(op, {"handle": self.handle}, inputs, wrong=list(wrong), lenient=bool(wrong), **more)

    def _take(self, caller: Caller) -> None:
        lane = self._lane(caller)
        if caller.draw.chance(0.05):
            lane = caller.draw.choice((-1, self.lanes, 2**40, -(2**63)))
            return caller.run(self._call("episode_queue_take", {"lane": int64(lane)}, [f"lane {lane}"]))
        is_closed = self.closed or lane in self._closed_lanes
        if not is_closed and not self._live_of(lane) and not any(self._queued.values()):
            return self._wait(caller, lane)
        taken = caller.run(self._call("episode_queue_take", {"lane": int64(lane)}), lambda: None)
        if caller.succeeded:
            self._check_taken(caller, lane, taken, is_closed)
        return None

    def _wait(self, caller: Caller, lane: int) -> None:
        """Takes from an empty queue, while something else ends the wait."""
        manager, run = cancellable(_take.get_concrete_function())
        ends: list[Any] = []

        def wait() -> None:
            try:
                ends.append(run(self.handle, tf.constant(lane, tf.int64)))
            except tf.errors.OpError as error:
                ends.append(error)

        caller.note("episode_queue_take", {"lane": lane})
        thread = threading.Thread(target=wait, daemon=True)
        how = caller.draw.choice(("cancel", "submit", "submit", "submit", "close"))
        thread.start()
        if how == "cancel":
            manager.start_cancel()
        while how == "submit" and not any(self._queued.values()):
            self._submit(caller)
        while how == "close" and not self.closed:
            self.close(caller)
        thread.join(_PATIENCE)
        if not ends:
            raise Wrong(f"{caller.where}: a take of lane {lane} still waits after {how}")
        caller.count("episode_queue_take", not isinstance(ends[0], tf.errors.OpError))
        if how == "cancel" and isinstance(ends[0], tf.errors.CancelledError):
            return self._close_lane(lane)  # it may have been cancelled before the op ran, and then the lane is open
        if isinstance(ends[0], tf.errors.OpError):
            raise Wrong(f"{caller.where}: a take of lane {lane} ended after {how} with {ends[0]!r}")
        if how == "cancel":
            self._closed_lanes.add(lane)
        return self._check_taken(caller, lane, ends[0], how != "submit")

    def _close_lane(self, lane: int) -> None:
        """Cancels a take that waits, or finds the lane closed."""
        closed = False
        while not closed:
            manager, run = cancellable(_take.get_concrete_function())
            timer = threading.Timer(0.05, manager.start_cancel)
            timer.start()
            with suppress(tf.errors.CancelledError):
                closed = bool(run(self.handle, tf.constant(lane, tf.int64)).closed)
            timer.join()
        self._closed_lanes.add(lane)

    def _check_taken(self, caller: Caller, lane: int, taken: Any, closed: bool) -> None:
        started = []
        if not closed:
            for slot in self._slots_of(lane):
                if slot not in self._live and any(self._queued.values()):
                    priority = min(number for number, episodes in self._queued.items() if episodes)
                    started.append((slot, self._queued[priority].popleft()))
        self._rows.fill(taken)
        rows = dict(zip(taken.live_slots.numpy().tolist(), taken.live_rows.numpy().tolist(), strict=True))
        for slot, episode in started:
            self._live[slot] = Playing(episode, rows.get(slot, -1))
        expected = [(slot, each.seed, each.max_frames, each.normalizer) for slot, each in started]
        got = [taken.slots, taken.seeds, taken.max_frames, taken.normalizers]
        live = {slot: self._live[slot].row for slot in self._live_of(lane)}
        # A cancelled step receives no information about its lane.
        if bool(taken.closed) != closed or list(zip(*(each.numpy().tolist() for each in got), strict=True)) != expected:
            raise Wrong(f"{caller.where}: lane {lane} took {taken}, expected closed = {closed} and to start {expected}")
        if rows != live and not (closed and not rows):
            raise Wrong(f"{caller.where}: lane {lane} plays {rows}, expected {live}")
        of_lane = range(self.first_row + lane * self.slots, self.first_row + (lane + 1) * self.slots)
        for slot, row in rows.items():
            if not self._rows.holds(row, self._live[slot].episode.genome, of_lane):
                raise Wrong(f"{caller.where}: slot {slot} plays row {row}, which is not {self._live[slot]}")

    def _play(self, caller: Caller) -> None:
        """Resets what was taken and steps a lane in the pool, so that there is something to book."""
        lane = self._lane(caller)
        live = self._live_of(lane)
        if self.pool is None or lane in self._stepped or not live:
            return
        new = [slot for slot in live if self._live[slot].steps == 0]
        if new:
            episodes = [self._live[slot].episode for slot in new]
            frames = [episode.max_frames for episode in episodes]
            if not self.pool.reset(caller, new, [episode.seed for episode in episodes], frames, []):
                return
        slots = caller.draw.some(live)
        actions = self.pool.actions_for(caller.draw, slots, 0.05, NOT_FINITE)
        stepped = self.pool.step_slots(caller, slots, actions)
        if stepped is not None:
            self._stepped[lane] = slots, *stepped
            for slot, action in zip(slots, actions, strict=True):
                if not self.pool.discrete and not np.all(np.isfinite(action)):
                    self._live[slot].failure = "action"

    def _put(self, caller: Caller) -> None:
        """Books what was stepped, or rewards of nothing that ended; or what cannot be."""
        draw, lane = caller.draw, self._lane(caller)
        live = self._live_of(lane)
        pool = self.handle if self.pool is None else self.pool.handle
        slots = draw.some(live)
        rewards = np.array([draw.choice((0.0, 1.0, -0.5, 1e300, *FLOATS, *NOT_FINITE)) for _ in slots], np.float64)
        dones = np.zeros(len(slots), bool)
        if lane in self._stepped:
            slots, rewards, dones = self._stepped[lane]
        elif any(self._live[slot].steps == 0 for slot in slots):
            return  # the next play would reset it
        wrong: list[str] = []
        at = lane
        if draw.chance(0.15):
            match draw.choice(("lane", "slot", "idle", "twice", "done")):
                case "lane":
                    at = draw.choice((-1, self.lanes, 2**40, -(2**63)))
                    wrong = [f"lane {at}"]
                case "slot":
                    bad = draw.choice((-1, self.lanes * self.slots, 2**40, -(2**63)))
                    slots, rewards, dones = [*slots, bad], np.append(rewards, 0.0), np.append(dones, draw.chance(0.5))
                    wrong = [f"slot {bad}"]
                case "idle" if len(live) < self.slots:
                    idle = next(slot for slot in self._slots_of(lane) if slot not in live)
                    slots, rewards, dones = [*slots, idle], np.append(rewards, 0.0), np.append(dones, False)
                    wrong = [f"slot {idle}"]
                case "twice" if slots:
                    slots, rewards, dones = [*slots, slots[0]], np.append(rewards, 0.0), np.append(dones, dones[0])
                    wrong = [f"slot {slots[0]}"]
                case "done" if live and not dones.any():
                    slots, rewards, dones = [live[0]], np.zeros(1), np.ones(1, bool)
                    wrong = [f"slot {live[0]}", f"slot {live[-1]}"]
        inputs = {"lane": int64(at), "slots": int64(slots), "rewards": rewards, "dones": dones}
        call = self._call("episode_queue_put", inputs, wrong, paired=("slots", "rewards", "dones"))
        call.handles["env_pool"] = pool
        if self.pool is None:
            call.wrong, call.lenient = [*wrong, "'env_pool'"], True
        result = caller.run(call, None if call.wrong else lambda: None)
        if not caller.succeeded:
            return
        self._stepped.pop(lane, None)
        self._total_steps += len(slots)
        for slot, reward, done in zip(slots, rewards.tolist(), dones, strict=True):
            playing = self._live[slot]
            playing.total += reward
            playing.steps += 1
            if done:
                if not np.isfinite(playing.total):
                    playing.failure, playing.total = playing.failure or "the return is", 0.0
                self._results.append((playing.episode.id, playing.total, playing.steps, playing.failure))
                del self._live[slot]
        live = self._live_of(lane)
        free = len(live) < self.slots and any(self._queued.values())
        expected = (live, [self._live[slot].row for slot in live], self.closed or not live or free)
        got = (result.live_slots.numpy().tolist(), result.live_rows.numpy().tolist(), bool(result.refill))
        if got != expected:
            raise Wrong(f"{caller.where}: put of lane {lane} gave {got}, expected {expected}")

    def _results_(self, caller: Caller) -> None:
        draw = caller.draw
        count = draw.choice((0, 1, -1, -(2**63), len(self._results), 2**40))
        waits = count > len(self._results) and not self.closed
        milliseconds = draw.choice((0, 1, -1)) if waits else draw.choice((0, 2**63 - 1, -(2**63), 60_000))
        inputs = {"count": int64(count), "milliseconds": int64(milliseconds)}
        ids = [episode for episode, _, _, _ in self._results]
        totals, steps = np.array([total for _, total, _, _ in self._results]), [each[2] for each in self._results]
        expected = int64(ids), totals, int64(steps), None, int64([0] * len(ids)), None, None, int64(self._total_steps)
        result = caller.run(self._call("episode_queue_results", inputs), lambda: expected)
        if not caller.succeeded:
            return
        for failure, (episode, _, _, wanted) in zip(result.failures.numpy().tolist(), self._results, strict=True):
            if bool(failure) != bool(wanted) or wanted.encode() not in failure:
                raise Wrong(f"{caller.where}: episode {episode} failed with {failure!r}, expected {wanted!r} in it")
        self._results = []
