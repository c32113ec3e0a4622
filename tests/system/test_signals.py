"""Deferred signals: no signal is lost or handled too early, and the handlers are restored afterwards."""

import os
import signal
import threading
from contextlib import contextmanager

import pytest

from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.rollout.tensorflow import rollout
from neuroevo.system.signals import deferred_signals

HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Raised(BaseException):
    """Exception raised by a signal handler."""


@contextmanager
def handled(sent):
    """Install a signal handler that raises an exception in the block."""

    def handler(*_):
        raise Raised

    before = signal.signal(sent, handler)
    try:
        yield handler
    finally:
        signal.signal(sent, before)


@pytest.mark.parametrize("sent", HELD)
def test_a_signal_waits_for_the_end(sent):
    done = []
    with handled(sent) as handler:
        with pytest.raises(Raised), deferred_signals():
            os.kill(os.getpid(), sent)
            done += [1, 2]
        assert signal.getsignal(sent) is handler
    assert done == [1, 2]


@pytest.mark.parametrize("sent", HELD)
def test_without_a_signal_nothing_changes(sent):
    before = signal.getsignal(sent)
    with deferred_signals():
        assert signal.getsignal(sent) is not before
    assert signal.getsignal(sent) is before


def test_an_error_of_the_block_gives_way_to_the_signal():
    with handled(signal.SIGINT), pytest.raises(Raised) as raised, deferred_signals():
        signal.raise_signal(signal.SIGINT)
        raise ValueError
    assert isinstance(raised.value.__context__, ValueError)


def test_other_threads_hold_nothing():
    seen = []

    def work():
        with deferred_signals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_a_graph_is_traced_to_its_end(monkeypatch):
    """TensorFlow 2.21 loses some exceptions during tracing: Ctrl-C then had no effect, or ended with code 1."""
    lane_function, traced = rollout.lane_function, []

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        traced.append(lane_function(*arguments))
        return traced[0]

    monkeypatch.setattr(rollout, "lane_function", interrupted)
    with handled(signal.SIGINT), pytest.raises(Raised):
        LocalEvaluator("HardMaze-v0", "mlp", lanes=1, slots=1, device="cpu", engine="tensorflow")
    assert len(traced) == 1
