"""A step that waits for an episode ends when it is cancelled, even if the queue is closed or freed meanwhile."""

import gc
import threading

import pytest
import tensorflow as tf

from neuroevo.rollout.tensorflow.ops import load_ops
from tests.support.cancellable import cancellable

LANES = 4


def take_in(queue, lane):
    """Return a cancellation manager, and a function that waits for an episode of the lane."""
    take = tf.function(lambda: load_ops().episode_queue_take(queue, tf.constant(lane, tf.int64)).closed)
    return cancellable(take.get_concrete_function())


def make_queue():
    return load_ops().episode_queue_make(lanes=LANES, slots_per_lane=1, first_row=0)


@pytest.mark.parametrize("delay", [0.0, 0.01])
def test_a_waiting_step_is_cancelled_and_its_queue_dropped(delay):
    for _ in range(8):
        queue = make_queue()
        steps = [take_in(queue, lane) for lane in range(LANES)]
        ends = []

        def wait(run, ends=ends):
            try:
                ends.append(bool(run()))
            except tf.errors.CancelledError:
                ends.append("cancelled")

        threads = [threading.Thread(target=wait, args=(run,)) for _, run in steps]
        for thread in threads:
            thread.start()
        timers = [threading.Timer(delay, manager.start_cancel) for manager, _ in steps]
        for timer in timers:
            timer.start()
        del queue
        for each in threads + timers:
            each.join(60)
        assert len(ends) == LANES and all(end in (True, "cancelled") for end in ends)
        del steps, threads, timers, timer, wait
        gc.collect()


def test_a_lane_that_is_not_there_is_named_before_anything_can_be_cancelled():
    manager, run = take_in(make_queue(), LANES)
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"lane {LANES} is out of range \[0, {LANES}\)"):
        run()
    manager.start_cancel()  # no callback must be left registered
    assert manager.is_cancelled
