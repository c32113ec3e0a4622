"""Changes of architectures: every result is a valid network within the limits."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroevo.native.population import Population
from neuroevo.networks.changes import ChangeLimits, changed
from neuroevo.networks.grafting import cost
from neuroevo.networks.layers import output_size, split_lines

ROBOT = "input float32 17; dense 16 1.0; bias; tanh; dense 6 0.1; bias; tanh"
SCREEN = "input uint8 84 84 4; conv 16 8 8 4 same 1.0; bias; relu; dense 32 1.0; bias; relu; dense 18 0.1; bias"
ALL = ("relu", "tanh", "silu", "gelu")


def walk(text, limits, seed, steps=25):
    found, draw = [text], random.Random(seed)
    for _ in range(steps):
        found.append(changed(found[-1], limits, draw.randrange))
    return found


@given(st.sampled_from([ROBOT, SCREEN]), st.integers(0, 2**32), st.integers(1, 8), st.sampled_from([0, 8, 64]))
@settings(max_examples=25, deadline=None)
def test_a_walk_stays_within_the_limits(text, seed, layers, units):
    limits = ChangeLimits(300_000, layers, units, ALL)
    for before, after in zip(walk(text, limits, seed), walk(text, limits, seed)[1:], strict=False):
        assert after != before
        assert after.split(";")[0] == text.split(";")[0] and output_size(after) == output_size(text)
        lines = split_lines(after)[1:]
        kinds = [line[0] for line in lines if line[0] in ("conv", "dense", "lstm")]
        assert len(kinds) - 1 <= layers and kinds[-1] == "dense"
        assert sum(int(line[1]) for line in lines if line[0] == "lstm") <= units
        assert cost(after).weights == Population([after], rows=1).dimensions[0] <= 300_000


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_networks_with_relu_alone_are_for_integers(dtype):
    limits = ChangeLimits(4_000_000, 6, 0, ("relu",))
    texts = {text for seed in range(4) for text in walk(SCREEN, limits, seed)}
    assert len(texts) > 50
    Population(sorted(texts), rows=1, dtype=dtype)


def test_all_kinds_of_changes_come_up():
    limits = ChangeLimits(4_000_000, 6, 32, ALL)
    steps = {text for seed in range(300) for text in walk(SCREEN, limits, seed, 1)[1:]}
    main = [[line for line in split_lines(text) if line[0] in ("conv", "dense", "lstm")] for text in steps]
    assert {len(lines) for lines in main} == {2, 3, 4}
    assert any(lines[0][1] != "16" for lines in main)
    assert {lines[0][2] for lines in main if lines[0][0] == "conv"} > {"3", "5", "8"}
    assert {lines[0][4] for lines in main if lines[0][0] == "conv"} == {"1", "2", "4"}
    assert any(lines[1][0] == "lstm" for lines in main)
    assert any("silu" in text for text in steps) and any("gelu" in text for text in steps)


def test_without_a_possible_change_the_network_stays():
    limits = ChangeLimits(cost(ROBOT).weights, 1, 0, ("tanh",))
    smallest = ROBOT.replace("dense 16", "dense 4")
    assert changed(smallest, ChangeLimits(cost(smallest).weights, 1, 0, ("tanh",)), lambda n: n - 1) == smallest
    assert changed(ROBOT, limits, lambda n: 0) != ROBOT  # it may become narrower
