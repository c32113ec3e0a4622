"""Ends of a process between two writes to a sweep's database, without a process."""

import itertools
from contextlib import contextmanager

from sqlalchemy import event
from sqlalchemy.engine import Engine


class Crash(BaseException):
    """The end of a process."""


@contextmanager
def crash_before_write(number):
    """Have a Crash come before this statement of all that change rows, counted from 1, and before each after that."""
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
    """Run a sweep whose process ends before its 1st, 4th, 7th, ... write in turn, and again from the 1st after `every`.

    Returns:
        The trials, and how often the process has ended.
    """
    for crashes in range(1000):
        try:
            with crash_before_write(1 + 3 * crashes % every):
                return inline(sweep), crashes
        except Crash:
            pass
    raise AssertionError("the sweep does not end")
