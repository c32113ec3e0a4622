"""Power cuts, simulated: from whatever a disk may hold a run goes on, with the results of one that was left alone."""

import os

import pytest

from tests.support.power_cuts import TOYS, sample

STATES = int(os.environ.get("NEUROEVO_TEST_POWER_CUTS", "40"))  # of each run


@pytest.mark.parametrize("kind", [*TOYS, "resumed", "real"])
def test_a_run_goes_on_after_a_power_cut(kind):
    told = sample(kind, STATES)
    assert told["states"] == STATES
    assert told["operations"] > 30
    assert told["moments"] >= min(STATES, told["operations"]) // 2
