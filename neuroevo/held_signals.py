"""Signals that wait until something is over that would lose what their handlers raise."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deferred_signals() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP that come in the block are handled after it; in other threads than the main one they
    never interrupt anything. For fractions of a second: meanwhile Ctrl-C does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    known = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [each for each in known if signal.getsignal(each) is not None]  # None: from C
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came[:1]:
            signal.raise_signal(number)
