"""Fuzz targets of Python parsers pass on valid inputs, on inputs that once failed, and on a few mutants of both.

`make fuzz` runs the targets for longer, with atheris, which these tests do not require.
"""

import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given

from tests.fuzz.parsers.target import with_changed_values
from tests.fuzz.parsers.targets import TARGETS
from tests.fuzz.targets import TARGETS as ROWS
from tests.support.mutants import bounded, damaged, fuzz, seeds

INPUTS = Path(__file__).parents[1] / "inputs"  # of each target, what once made it fail


@pytest.fixture(scope="module")
def inputs():
    """What each target begins with, by its name."""
    made = {name: target.seeds() for name, target in TARGETS.items()}
    return {name: own + [path.read_bytes() for path in sorted((INPUTS / name).glob("*"))] for name, own in made.items()}


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_begins_with(inputs, name):
    for each in inputs[name]:
        with bounded(64):
            TARGETS[name].check(each)


@pytest.mark.parametrize("name", TARGETS)
def test_mutants(inputs, name):
    @fuzz(3)
    @given(seed=seeds)
    def check(seed):
        for each in inputs[name]:
            for mutant in (damaged(each, seed), with_changed_values(each, seed)):
                if mutant is not None:
                    with bounded(64):
                        TARGETS[name].check(mutant)

    check()


def test_pages_that_are_referred_to_again_and_again(inputs, tmp_path):
    """A tree of four levels above a table, each of 50 references to the next: 6 million times its rows."""
    data, size = bytearray(inputs["database"][0][1:]), 512
    (tmp_path / "run.db").write_bytes(data)
    with closing(sqlite3.connect(tmp_path / "run.db")) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'states'").fetchone()
    pages = len(data) // size
    child, tree = bytes(data[(root - 1) * size : root * size]), b""
    for number in range(pages + 1, pages + 5):  # the table's own page, and three levels above it
        tree += child
        starts = struct.pack(">50H", *range(size - 5, size - 255, -5))
        child = struct.pack(">BHHHBI", 5, 0, 50, size - 250, 0, number) + starts
        child = child.ljust(size - 250, b"\0") + struct.pack(">IB", number, 100) * 50
    data[(root - 1) * size : root * size] = child
    data[28:32] = struct.pack(">I", pages + 4)
    with bounded(64):
        TARGETS["database"].check(b"\0" + bytes(data) + tree)


def test_make_fuzz_runs_them():
    assert {target.name for target in ROWS if target.needs == "atheris"} == set(TARGETS)


def test_values_of_lines_are_changed():
    text = b'\1{"a": 1}\nnone'
    mutants = {with_changed_values(text, seed) for seed in range(20)}
    assert len(mutants) > 5 and all(each[:1] == b"\1" and each.endswith(b"\nnone") for each in mutants)
    assert with_changed_values(b"a = 1", 3) is None


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris, for Python 3.11 to 3.13, is not installed")
def test_with_atheris(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz.parsers", "layer_lines", "-runs=3000", "-seed=1", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert "Done 3000 runs" in ended.stderr
    assert len(list(tmp_path.iterdir())) > len(TARGETS["layer_lines"].seeds())  # inputs that reach other code
