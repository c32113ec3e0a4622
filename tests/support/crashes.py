"""Ends of a process between two writes to a sweep's database, without a process."""

import itertools

from optuna.storages import RDBStorage

WRITES = (
    "create_new_trial",
    "set_study_user_attr",
    "set_trial_intermediate_value",
    "set_trial_param",
    "set_trial_state_values",
    "set_trial_system_attr",
    "set_trial_user_attr",
)


class Crash(BaseException):
    """The end of a process."""


def crash_before_write(patch, number):
    """Have a Crash come before this write of all that follow, counted from 1, and before each after that.

    Not before a pruner's answer is noted: Optuna's asha notes the rung before it answers, and would not answer again.
    """
    count = itertools.count(1)

    def crashing(write):
        def method(*arguments, **options):
            if next(count) >= number and "stopped" not in arguments:
                raise Crash
            return write(*arguments, **options)

        return method

    for name in WRITES:
        patch.setattr(RDBStorage, name, crashing(getattr(RDBStorage, name)))


def with_crashes(monkeypatch, inline, sweep, every):
    """Run a sweep whose process ends before its 3rd, 4th, ... write in turn, and again from the 3rd after `every`.

    Returns:
        The trials, and how often the process has ended.
    """
    for crashes in range(100):
        with monkeypatch.context() as patch:
            crash_before_write(patch, 3 + crashes % every)
            try:
                return inline(sweep), crashes
            except Crash:
                pass
    raise AssertionError("the sweep does not end")
