"""Rounds of random calls: each has objects of its own and follows from the seed and its number."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import tensorflow as tf

from tests.support.fuzz_ops import lanes, pools, populations, queues
from tests.support.fuzz_ops.calls import Caller
from tests.support.fuzz_ops.last_call import LastCalls
from tests.support.fuzz_ops.values import Draw

CALLS = 400  # of a round, or a little more
_THREADS = 3
_MOST = 6  # concurrent objects

Subject = pools.Pool | populations.Population | queues.Queue


def play(seed: int, number: int, last_calls: LastCalls) -> Counter[tuple[str, str]]:
    """Plays a round; every fourth one in several threads.

    Returns:
        How often each op succeeded and was refused.

    Raises:
        Wrong: An op did what it must not do.
    """
    draw = Draw(f"{seed} {number}")
    caller = Caller(draw, 0, last_calls, _foreign_handles(), where=f"seed {seed}, round {number}")
    if number % 4 == 3:
        return lanes.play(caller, _THREADS, CALLS) if draw.chance(0.5) else _in_threads(caller)
    subjects: list[tuple[Subject, int]] = []
    while caller.calls < CALLS:
        if not subjects or (len(subjects) < _MOST and draw.chance(0.02)):
            _add(caller, subjects)
        elif draw.chance(0.01):
            del subjects[draw.randrange(len(subjects))]
        elif draw.chance(0.005):
            _destroy(caller, draw.choice(subjects)[0].handle)
        else:
            subject, size = draw.choice(subjects)
            subject.step(caller) if isinstance(subject, queues.Queue) else subject.step(caller, range(size))
    return caller.counts


def _foreign_handles() -> dict[str, tf.Tensor]:
    """Handles of what is not ours: a variable, one that was never made, and a table."""
    never = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="never made")
    table = tf.raw_ops.AnonymousHashTable(key_dtype=tf.int64, value_dtype=tf.int64)
    return {"variable": tf.Variable(1.0).handle, "never made": never, "table": table}


def _destroy(caller: Caller, handle: tf.Tensor) -> None:
    """Has TensorFlow free what a handle stands for, which must stay as long as there is the handle."""
    caller.note("DestroyResourceOp", {})
    with suppress(tf.errors.OpError):
        tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=caller.draw.chance(0.5))


def _add(caller: Caller, subjects: list[tuple[Subject, int]]) -> None:
    """Tries to make one more object, of few slots or rows."""
    draw, size = caller.draw, caller.draw.randint(1, 6)
    made: Subject | None
    match draw.choice(("env", "env", "population", "population", "episode")):
        case "env" as kind:
            made = pools.make(caller, size, draw.choice(pools.GAMES))
        case "population" as kind:
            made = populations.make(caller, size)
        case kind:
            made = queues.make(caller, draw.randint(1, 3), draw.randint(1, 3), draw.randrange(4))
            if made is not None:
                made.pool = pools.make(caller, made.lanes * made.slots, draw.choice(pools.GAMES))
    if made is not None:
        subjects.append((made, size))
        caller.others[kind] = made.handle


def _in_threads(caller: Caller) -> Counter[tuple[str, str]]:
    """Several threads call ops of the same pool and population; each has slots and rows of its own."""
    size = 4 * _THREADS
    pool = population = None
    while pool is None or population is None:
        pool = pool or pools.make(caller, size, caller.draw.choice(pools.GAMES))
        population = population or populations.make(caller, size)
    shared = pool, population
    caller.others |= {"env": pool.handle, "population": population.handle}

    def work(own: Caller) -> None:
        mine = range(own.thread, size, _THREADS)
        made: list[tuple[Subject, int]] = []
        while own.calls < CALLS // _THREADS:
            if own.draw.chance(0.03):
                _add(own, made)
            elif made and own.draw.chance(0.1):
                subject, rows = made[-1]
                own.alone = True
                own.draw.shared = False
                subject.step(own) if isinstance(subject, queues.Queue) else subject.step(own, range(rows))
                own.alone, own.draw.shared = False, True
            elif made and own.draw.chance(0.05):
                made.pop()
            else:
                own.draw.choice(shared).step(own, list(mine))

    return lanes.run_threads(caller, _THREADS, work)
