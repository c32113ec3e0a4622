"""The soak test detects growth: by its rule, and in runs of some seconds with a planted leak."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.growth import LEAST_SAMPLES, OF_PROCESS, Quantity, Samples, growing
from tests.support.soak import LEAKS, OF_FOLDER

ROOT = Path(__file__).parents[2]
NOISE = np.random.default_rng(0).normal(0, 1, 90)


def sampled(values, tolerance=0.5, share=0.0):
    samples = Samples("a soak", [Quantity("x", tolerance, share)])
    for number, value in enumerate(values):
        samples.add(20 * number, [value])
    return samples


@pytest.mark.parametrize(
    ("values", "tolerance", "grows"),
    [
        (np.full(90, 7.0), 0.5, False),
        (7 + NOISE, 2, False),
        (7 + np.arange(90) / 10, 0.5, True),
        (7 + np.arange(90) // 8, 0.5, True),  # one every eighth sample
        (7 + NOISE + np.arange(90) / 10, 2, True),
        (7 + np.arange(90) / 10, 9, False),  # within the allowed growth
        (7 - np.arange(90) / 10, 0.5, False),
        (np.minimum(np.arange(90), 29.0), 0.5, False),  # only in the first third
        (np.where(np.arange(90) < 60, 7.0, 9.0), 0.5, False),  # a step
        (np.where(np.arange(90) == 70, 99.0, 7.0), 0.5, False),  # a spike
    ],
)
def test_the_rule(values, tolerance, grows):
    samples = sampled(values, tolerance)
    assert growing([samples]) == (["a soak: x"] if grows else [])
    assert ("GROWING" in samples.table()) == grows


def test_the_numbers_of_a_table():
    (row,) = sampled(3 + np.arange(90) / 10, tolerance=2, share=0.1).rows()
    assert (row.first, row.last) == (3.0, 11.9)
    assert row.slope == pytest.approx(1000 * 0.1 / 20)
    assert row.median == pytest.approx(3 + (30 + 89) / 20)
    assert row.grows
    assert not sampled(3 + np.arange(90) / 10, share=1.0).rows()[0].grows


def test_too_short():
    with pytest.raises(ValueError, match=f"{LEAST_SAMPLES - 1} samples"):
        sampled(NOISE[: LEAST_SAMPLES - 1]).rows()


@pytest.mark.thorough
@pytest.mark.slow
def test_planted_leaks_are_told_from_what_does_not_grow():
    planted = set(LEAKS)
    assert grown(*planted) - {"memory of child processes"} == planted


def grown(*leaks):
    """Return the quantities that grow in a soak of some seconds, from its tables."""
    options = ["--minutes", "0.1", "--kind", "ga", *(f"--leak={leak}" for leak in leaks)]
    command = [sys.executable, "-m", "tests.support.soak", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (int(bool(leaks)), ""), done.stdout
    rows = re.findall(r"^  (\w[^,]*?)(?:,.*)?  .*(GROWING|flat)$", done.stdout, re.MULTILINE)
    assert len(rows) == 2 * len(OF_PROCESS) + len(OF_FOLDER)
    return {name for name, verdict in rows if verdict == "GROWING"}
