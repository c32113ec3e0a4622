"""Schedules against hand-computed numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.schedules import ConstantSchedule, ExponentialSchedule, LinearSchedule, shortest, value_at


def test_a_number_is_constant():
    assert [value_at(0.002, generation, 10**9) for generation in (0, 1, 1000)] == [0.002] * 3
    assert value_at(ConstantSchedule(0.5), 3, 4) == 0.5


def test_linear_by_generation():
    schedule = LinearSchedule(initial_p=0.5, final_p=0.1, schedule=4)
    assert [value_at(schedule, g, 0) for g in range(6)] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1, 0.1], abs=1e-15)


def test_linear_by_steps():
    schedule = LinearSchedule(initial_p=1.0, final_p=3.0, schedule=1000, field="timesteps_so_far")
    assert [value_at(schedule, 99, steps) for steps in (0, 250, 500, 1000, 5000)] == [1.0, 1.5, 2.0, 3.0, 3.0]


def test_exponential():
    schedule = ExponentialSchedule(initial_p=1.0, final_p=0.01, schedule=4)
    expected = [1.0, 10**-0.5, 0.1, 10**-1.5, 0.01, 0.01]
    assert [value_at(schedule, g, 0) for g in range(6)] == pytest.approx(expected, rel=1e-14)


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.floats(1, 1e6), st.integers(0, 2_000_000))
def test_a_schedule_stays_between_its_ends(initial, final, length, generation):
    for kind in (LinearSchedule, ExponentialSchedule):
        value = value_at(kind(initial, final, length), generation, 0)
        assert min(initial, final) * (1 - 1e-9) <= value <= max(initial, final) * (1 + 1e-9)


def test_sigma_in_the_2018_syntax():
    table = {"type": "LinearSchedule", "initial_p": 0.5, "final_p": 0.25, "schedule": 2, "field": "iteration"}
    ga = GA(population=4, parents=2, sigma=table)
    state = ga.init(0)
    sigmas = []
    for _ in range(4):
        genomes = ga.ask(state)
        told = ga.tell(state, EvaluatedPopulation(genomes, np.arange(4.0), 7))
        best = ga.candidates(told)
        after = ga.tell_validation(told, EvaluatedPopulation(best, np.zeros(len(best)), 3))
        sigmas.append(ga.metrics(state, after)["sigma"])
        assert all(genome.mutations == () or genome.mutations[-1][1] == sigmas[-1] for genome in genomes)
        state = after
    assert sigmas == [0.5, 0.375, 0.25, 0.25]


def test_sigma_is_a_float32_value_that_people_can_read():
    assert GA().metrics(GA().init(0), GA().init(0)) == {
        "sigma": 0.002
    }  # not 0.0020000000949949026, the same in 32 bits


@given(st.floats(min_value=2**-100, max_value=2**100, width=32))
def test_the_shortest_number_is_the_same_in_32_bits(value):
    assert np.float32(shortest(value)) == np.float32(value)
    assert len(repr(shortest(value))) <= len(repr(value))


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        ({"type": "Linear"}, "table with type"),
        ({"initial_p": 1.0}, "table with type"),
        ({"type": "LinearSchedule", "initial_p": 1.0, "final_p": 0.0, "schedule": 3}, "greater than 0"),
        ({"type": "LinearSchedule", "initial_p": 1.0, "final_p": 1.0, "schedule": 3, "field": "x"}, "timesteps_so_far"),
        ({"type": "ExponentialSchedule", "initial_p": 1.0, "final_p": 1.0}, "Field required"),
        (-0.1, "greater than 0"),
        (float("nan"), "finite"),
        ("0.1", "valid number"),
    ],
)
def test_wrong_schedules(sigma, message):
    with pytest.raises(ValidationError, match=message):
        GA(sigma=sigma)
