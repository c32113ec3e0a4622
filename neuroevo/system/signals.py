"""Defer signals during code that would lose the exceptions of their handlers."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_signals() -> Iterator[list[int]]:
    """Defer SIGINT, SIGTERM and SIGHUP: the first one that arrives during the block is handled after it.

    Python handles signals in the main thread only, so in other threads this does nothing. Ctrl-C has no effect during
    the block, which should therefore take only a fraction of a second, or end soon after a signal has arrived.

    Yields:
        The list of signal numbers that have arrived so far, updated during the block.
    """
    arrived: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield arrived
        return
    known = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [each for each in known if signal.getsignal(each) is not None]  # None: not installed from Python
    before = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in numbers}
    try:
        yield arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for first in arrived[:1]:
            signal.raise_signal(first)
