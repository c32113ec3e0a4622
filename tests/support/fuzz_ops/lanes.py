"""Threads that call ops at once: of lanes that play episodes while others are submitted, and of anything else."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tests.support.fuzz_ops import pools, queues
from tests.support.fuzz_ops.calls import Call, Caller, Wrong
from tests.support.fuzz_ops.submissions import submission
from tests.support.fuzz_ops.values import Draw, int64

_PATIENCE = 60.0  # seconds; far more than any call takes


def run_threads(
    caller: Caller, threads: int, work: Callable[[Caller], None], meanwhile: Callable[[], None] | None = None
) -> Counter[tuple[str, str]]:
    """Runs work in several threads, each with a caller of its own, and something in this one.

    Returns:
        The counts of all callers.

    Raises:
        Wrong: One of them did, or one does not end.
    """
    failures: list[BaseException] = []

    def run(own: Caller) -> None:
        try:
            work(own)
        except BaseException as failure:  # reaches who started the threads
            failures.append(failure)

    callers, running = [], []
    for index in range(threads):
        draw = Draw(f"{caller.where} {index}")
        draw.shared = True
        own = Caller(draw, index + 1, caller.last_calls, dict(caller.others), alone=False, where=caller.where)
        callers.append(own)
        running.append(threading.Thread(target=run, args=(own,), daemon=True))
    for thread in running:
        thread.start()
    try:
        if meanwhile is not None:
            meanwhile()
    finally:
        for thread in running:
            thread.join(_PATIENCE)
    if failures:
        raise failures[0]
    if any(thread.is_alive() for thread in running):
        raise Wrong(f"{caller.where}: a thread does not end")
    return sum((own.counts for own in callers), caller.counts)


def play(caller: Caller, lanes: int, calls: int) -> Counter[tuple[str, str]]:
    """A thread for each lane plays what this one submits, until it closes the queue."""
    slots, first_row = 3, 2
    queue = pool = None
    while queue is None or pool is None:
        queue = queue or queues.make(caller, lanes, slots, first_row)
        pool = pool or pools.make(caller, lanes * slots, caller.draw.choice(pools.GAMES))
    queue.pool = pool
    handles = queue.handle, pool
    caller.others |= {"episode": queue.handle, "env": pool.handle}
    submitted: set[int] = set()
    ended: list[int] = []

    def results() -> None:
        inputs = {"count": int64(caller.draw.choice((0, 1, 5))), "milliseconds": int64(1)}
        got = caller.run(Call("episode_queue_results", {"handle": queue.handle}, inputs))
        ended.extend([] if got is None else got.episode_ids.numpy().tolist())

    def meanwhile() -> None:
        next_id = 0
        try:
            while caller.calls < calls // 4:
                given = submission(caller.draw, {}, next_id, first_row)
                call = Call("episode_queue_submit", {"handle": queue.handle}, given.arrays, paired=given.paired)
                call.wrong, call.lenient = list(given.wrong), bool(given.wrong)
                next_id += len(given.episodes) + len(given.genomes)
                submitted.update(episode.id for episode in given.episodes)
                caller.run(call)
                results()
        finally:
            while not queue.closed:
                queue.close(caller)

    counts = run_threads(caller, lanes, lambda own: _play_lane(own, *handles, slots), meanwhile)
    results()
    if len(set(ended)) != len(ended) or not submitted.issuperset(ended):
        raise Wrong(f"{caller.where}: results of episodes {sorted(ended)}, expected each once, of {sorted(submitted)}")
    return counts


def _play_lane(caller: Caller, queue: tf.Tensor, pool: pools.Pool, slots: int) -> None:
    lane = caller.thread - 1

    def in_pool(op: str, inputs: dict[str, np.ndarray]) -> Any:
        return _until_taken(caller, lambda: Call(op, {"handle": pool.handle}, dict(inputs)))

    while True:
        taken = _until_taken(caller, lambda: Call("episode_queue_take", {"handle": queue}, {"lane": int64(lane)}))
        if taken.closed:
            return
        new = taken.slots.numpy()
        if len(new):
            inputs = {"slots": new, "seeds": taken.seeds.numpy(), "max_frames": taken.max_frames.numpy()}
            inputs["normalizers"] = int64([-1] * len(new))
            in_pool("env_reset", inputs)
        live, refill = taken.live_slots.numpy(), False
        while not refill and len(live):
            actions = pool.actions_for(caller.draw, live, 0)
            inputs = {"slots": live, "actions": actions}
            stepped = in_pool("env_step", inputs)
            inputs = {"lane": int64(lane), "slots": live, "rewards": stepped.rewards.numpy()}
            inputs["dones"] = stepped.dones.numpy()
            handles = {"handle": queue, "env_pool": pool.handle}
            put = _until_taken(
                caller, lambda inputs=inputs, handles=handles: Call("episode_queue_put", dict(handles), dict(inputs))
            )
            live, refill = put.live_slots.numpy(), bool(put.refill)


def _until_taken(caller: Caller, call: Callable[[], Call]) -> Any:
    """Makes the call until it is not spoiled."""
    for _ in range(30):
        made = call()
        result = caller.run(made)
        if caller.succeeded:
            return result
        if not made.wrong:
            break
    raise Wrong(f"{caller.where}: {made.op} of {made.inputs} was refused")
