"""Simulated crashes between two writes to a sweep's database, in one process."""

import itertools
from contextlib import contextmanager

from sqlalchemy import event
from sqlalchemy.engine import Engine


class Crash(BaseException):
    """Exception that simulates the end of a process."""


@contextmanager
def crash_before_write(number):
    """Raise Crash before the statement of this number, counted from 1, and each later statement that changes rows."""
    count = itertools.count(1)

    def crashing(connection, cursor, statement, *_):
        if not statement.startswith(("SELECT", "PRAGMA", "CREATE")) and next(count) >= number:
            raise Crash

    event.listen(Engine, "before_cursor_execute", crashing)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", crashing)


def with_crashes(inline, sweep, every):
    """Run a sweep that crashes before its 1st, 4th, 7th, ... write in turn, starting over at the 1st after `every`.

    Returns:
        The trials, and the number of crashes.
    """
    for crashes in range(1000):
        try:
            with crash_before_write(1 + 3 * crashes % every):
                return inline(sweep), crashes
        except Crash:
            pass
    raise AssertionError("the sweep does not end")
