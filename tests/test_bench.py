"""`neuroevo bench env`, for real: its graph loop plays on over the ends of episodes. (test_cli.py has its output.)"""

import time

import pytest

from neuroevo import bench


@pytest.mark.parametrize("envs", [1, 3])
def test_environments_are_stepped_until_the_time_is_over(envs):
    # A random game of Frostbite is over after some 350 steps: a slot that was not reset would be an error.
    began = time.perf_counter()
    found = bench.env("frostbite", envs=envs, threads=None, seconds=0.5)
    assert time.perf_counter() - began >= 0.5
    assert found["envs"] == envs
    assert found["steps_per_s"] > 0
    assert found["frames_per_s"] == pytest.approx(4 * found["steps_per_s"], rel=1e-3)
