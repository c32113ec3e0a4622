"""`neuroevo bench env`, for real: its graph loop plays on over the ends of episodes (test_cli.py has its output); and
what `make bench` measures of MuJoCo plays what it is to be compared with."""

import time

import numpy as np
import pytest

from experiments.benchmarks.replay import replay
from neuroevo.benchmarks import env_rate, rates
from neuroevo.core.errors import UserError
from neuroevo.native import library
from tests.support.mujoco_reference import make


@pytest.mark.parametrize("envs", [1, 3])
def test_environments_are_stepped_until_the_time_is_over(envs):
    # A random game of Frostbite is over after some 350 steps: a slot that was not reset would be an error.
    began = time.perf_counter()
    found = env_rate.env("frostbite", envs=envs, threads=None, seconds=0.5)
    assert time.perf_counter() - began >= 0.5
    assert found["envs"] == envs
    assert found["steps_per_s"] > 0
    assert found["frames_per_s"] == pytest.approx(4 * found["steps_per_s"], rel=1e-3)


def test_environments_that_take_vectors_are_stepped_too():
    # A random InvertedPendulum falls after some 6 steps.
    found = env_rate.env("InvertedPendulum-v5", envs=3, threads=None, seconds=0.3)
    assert (found["env"], found["envs"]) == ("InvertedPendulum-v5", 3)
    assert found["steps_per_s"] > 0
    assert found["frames_per_s"] == pytest.approx(2 * found["steps_per_s"], rel=1e-3)


@pytest.mark.parametrize("genomes", ["low_rank", "same"])
def test_rollouts_of_members_and_of_one_network(genomes):
    options = {"rank": 2, "env_options": {"emulator": "ale"}, "lanes": 1, "slots": 3}
    found = rates.rollout("frostbite", "virtual_bn", 0.3, genomes=genomes, **options)
    assert (found["genomes"], found["lanes"], found["slots"]) == (genomes, 1, 3)
    assert found["steps_per_s"] > 0


def test_unknown_genomes_are_told():
    with pytest.raises(UserError, match="genomes 'low_ranks' is unknown; did you mean low_rank"):
        rates.Rollout("frostbite", "model", genomes="low_ranks")


def test_no_less_than_no_time_is_outside():
    assert rates.outside(processor=2.5, busy=2.0, steps=1000) == {"outside_us": 500.0, "outside_share": 0.2}
    assert rates.outside(processor=2.0, busy=7.9, steps=1000) == {"outside_us": None, "outside_share": None}


def test_the_ops_replay_actions_and_resets(tmp_path):
    steps, lanes, slots = 40, 2, 3
    pool, every = make("InvertedPendulum-v5", slots=lanes * slots), np.arange(lanes * slots)
    shape = steps, lanes * slots, pool.num_actions
    actions = np.random.default_rng(0).uniform(pool.action_low, pool.action_high, shape).astype(np.float32)
    actions.tofile(tmp_path / "actions")
    pool.reset(every, every, 0 * every)
    ends = 0
    for step, action in enumerate(actions):
        _, dones = pool.step(every, action)
        over = every[dones]
        pool.reset(over, over + (step + 1) * 2**20, 0 * over)
        ends += len(over)
    assert ends > 10
    before = library.get_threads()
    try:
        measure = replay("InvertedPendulum-v5", str(tmp_path / "actions"), slots, threads=lanes)
        found = [measure(0.1) for _ in range(2)]
    finally:
        library.set_threads(before)
    expected = int(np.bitwise_xor.reduce(pool.observe(every).view(np.uint64), axis=None))
    assert [each["last_observations"] for each in found] == [expected] * 2
    assert all(each["steps_per_s"] > 0 for each in found)
