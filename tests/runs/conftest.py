"""Runs that several files of tests compare with."""

import json

import pytest

from tests.support.runs import new_run, results


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """The results of a run without a stop; it is made once for all tests that ask for the same changes."""
    known = {}

    def of(**changes):
        key = json.dumps(changes)
        if key not in known:
            path = tmp_path_factory.mktemp("whole") / "run"
            new_run(path, **changes)
            known[key] = results(path)
        return known[key]

    return of
