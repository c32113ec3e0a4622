"""The fuzz targets are whole: each has its source and inputs, and the runner says what is missing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests/fuzz"


def run(*arguments, **variables):
    command = [sys.executable, "-m", "tests.fuzz.run", *arguments]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True)


@pytest.mark.parametrize("compiler", ["no-such-clang++", "g++"])
def test_without_clang(compiler):
    ended = run("networks", FUZZ_CXX=compiler)
    assert ended.returncode == 2
    assert f"'{compiler}'" in ended.stderr and "apt-get install -y clang libclang-rt-14-dev" in ended.stderr


def test_a_target_that_there_is_not():
    ended = run("netwrks")
    assert ended.returncode == 2
    assert "'netwrks'" in ended.stderr and all(target.name in ended.stderr for target in TARGETS)


def test_every_target_in_cpp_is_compiled_for_tests_too():
    (names,) = re.findall(r"^set\(targets ([a-z_ ]+)\)$", (FUZZ / "native/CMakeLists.txt").read_text(), re.MULTILINE)
    assert set(names.split()) == {target.name for target in TARGETS if target.native}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_inputs(target):
    folder = FUZZ / "inputs" / target.name
    if not target.native and not folder.exists():  # it makes what it begins with, and has failed for nothing yet
        return
    inputs = sorted(folder.iterdir())
    assert inputs
    sizes = [len(bytes.fromhex(re.sub("#.*", "", each.read_text()))) for each in inputs if each.suffix == ".hex"]
    sizes += [each.stat().st_size for each in inputs if each.suffix != ".hex"]
    assert max(sizes) <= target.max_length  # libFuzzer would cut a longer one
