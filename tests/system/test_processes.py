"""Number of cores that this process may use."""

from __future__ import annotations

import os

import pytest

from neuroevo.system.processes import usable_cores


def test_those_that_the_process_may_run_on() -> None:
    allowed = os.sched_getaffinity(0)
    assert usable_cores() == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(("machine", "expected"), [(12, 12), (None, 1)])
def test_those_of_the_machine_where_nothing_else_is_known(
    machine: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: machine)
    assert usable_cores() == expected
