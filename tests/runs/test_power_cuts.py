"""Simulated power cuts: a run resumes from any possible disk contents, with the results of an uninterrupted run."""

import os

import pytest

from tests.support.power_cuts import KINDS, sample

STATES = int(os.environ.get("NEUROEVO_TEST_POWER_CUTS", "8"))  # disk states per run


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_goes_on_after_a_power_cut(kind):
    found = sample(kind, STATES)
    assert found["states"] == STATES
    assert found["operations"] > 90
    assert found["moments"] >= min(STATES, found["operations"]) // 2
    assert found["begun"] < STATES // 2 and (found["begun"] > 0) == (kind != "resumed")
