"""Choice of the code of a portable build, and identical results of all levels."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from neuroevo.core.errors import UserError
from neuroevo.native import cpu, library

V3 = cpu.LEVELS["x86-64-v3"].flags
V4 = V3 | cpu.LEVELS["x86-64-v4"].flags

GA = {"name": "ga", "population": 4, "parents": 2, "validation_candidates": 2}
TRAINING = {"generations": 2, "max_episode_steps": 150, "validation_episodes": 1, "test_episodes": 0}
PLAYED = {
    "float32": {"env": {"name": "HalfCheetah-v5"}, "network": {"name": "mlp", "hidden": [37]}},
    "int8": {"env": {"name": "assault"}, "network": {"name": "model", "dtype": "int8"}},
}
PROGRAM = """
import json, sys, neuroevo
from neuroevo.native import library
tables = json.loads(sys.argv[1])
rows = neuroevo.train(tables, out=sys.argv[2]).rows()
print(json.dumps([library.cpu_level(), [row["fitness"] for row in rows]]))
"""


@pytest.fixture
def processor(monkeypatch, tmp_path):
    """Return a function that simulates a processor with given flags."""
    monkeypatch.delenv(cpu.VARIABLE, raising=False)
    monkeypatch.setattr(cpu, "_CPUINFO", tmp_path / "cpuinfo")

    def give(flags):
        (tmp_path / "cpuinfo").write_text(
            f"processor\t: 0\nflags\t\t: {' '.join(flags)}\n\nprocessor\t: 1\nflags\t\t: \n"
        )

    return give


@pytest.mark.parametrize(
    "flags, expected",
    [
        ((), "x86-64"),
        (V3 - {"fma"}, "x86-64"),
        (V3, "x86-64-v3"),
        (V3 | {"avx512f", "avx512_vnni"}, "x86-64-v3"),  # avx512_vnni is not sufficient without all of x86-64-v4
        (V3 | {"avx_vnni"}, "x86-64-v3-vnni"),
        (V4, "x86-64-v4"),
        (V4 | {"avx_vnni"}, "x86-64-v4"),
        (V4 | {"avx512_vnni"}, "x86-64-v4-vnni"),
    ],
)
def test_a_processors_best_code_is_used(processor, flags, expected):
    processor(flags)
    assert cpu.choose("portable") == expected


def test_without_proc_any_processor_is_the_oldest(processor):
    assert cpu.processor_flags() == frozenset() and cpu.choose("portable") == "x86-64"


def test_the_variable_chooses(processor, monkeypatch):
    processor(V4)
    for level in ("x86-64", "x86-64-v3", "x86-64-v4"):
        monkeypatch.setenv(cpu.VARIABLE, level)
        assert cpu.choose("portable") == level
    monkeypatch.setenv(cpu.VARIABLE, "native")
    assert cpu.choose("native") == "native"


@pytest.mark.parametrize(
    "arch, wanted, words",
    [
        ("portable", "x86-64-v5", "'x86-64-v5', which is unknown; did you mean x86-64-v"),
        ("portable", "x86-64-v4", "'x86-64-v4', but this machine's processor lacks avx512bw, avx512cd"),
        ("portable", "x86-64-v3-vnni", "lacks avx_vnni; expected one of x86-64, x86-64-v3$"),
        ("native", "x86-64-v3", "'x86-64-v3', but the native libraries were built for 'native' only"),
        ("x86-64-v3", "x86-64", "were built for 'x86-64-v3' only"),
    ],
)
def test_mistakes_in_the_variable(processor, monkeypatch, arch, wanted, words):
    processor(V3)
    monkeypatch.setenv(cpu.VARIABLE, wanted)
    with pytest.raises(UserError, match=words):
        cpu.choose(arch)


def test_a_library_comes_from_the_best_folder_that_has_it(processor, monkeypatch, tmp_path):
    processor(V4 | {"avx512_vnni"})
    monkeypatch.setattr(library, "LIBRARY_FOLDER", tmp_path)
    monkeypatch.setattr(library, "cpu_level", library.cpu_level.__wrapped__)
    places = ("a", "x86-64-v3/a", "x86-64-v4/a", "x86-64-v4-vnni/a", "b", "x86-64-v3/b", "x86-64-v3-vnni/b", "c")
    for place in places:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).touch()
    (tmp_path / "build_info.json").write_text(json.dumps({"arch": "portable"}))
    found = [str(library.library_path(name).relative_to(tmp_path)) for name in "abc"]
    assert found == ["x86-64-v4-vnni/a", "x86-64-v3/b", "c"]
    monkeypatch.setenv(cpu.VARIABLE, "x86-64")
    assert library.library_path("a") == tmp_path / "a"
    (tmp_path / "build_info.json").write_text(json.dumps({"arch": "x86-64"}))  # folders of an earlier build
    assert library.library_path("a") == tmp_path / "a"
    with pytest.raises(FileNotFoundError, match="native library d is not built"):
        library.library_path("d")


@pytest.mark.parametrize("level", cpu.runnable(cpu.processor_flags()))
@pytest.mark.parametrize("dtype", PLAYED)
def test_every_level_plays_the_same_run(tmp_path_factory, level, dtype):
    if library.build_info()["arch"] != cpu.PORTABLE:
        pytest.skip("one level was built; make build ARCH=portable builds them all")
    best = cpu.runnable(cpu.processor_flags())[-1]
    if level == best:
        pytest.skip("it is what the others are compared with")
    assert played(tmp_path_factory, level, dtype) == played(tmp_path_factory, best, dtype)


_PLAYED: dict[tuple[str, str], list] = {}


def played(tmp_path_factory, level, dtype):
    """Return the results of a small run with the code of a level."""
    if (level, dtype) not in _PLAYED:
        tables = {**PLAYED[dtype], "algorithm": GA, "training": TRAINING}
        command = [sys.executable, "-c", PROGRAM, json.dumps(tables), str(tmp_path_factory.mktemp("run") / "run")]
        environment = {**os.environ, cpu.VARIABLE: level}
        done = subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE)
        used, found = json.loads(done.stdout.splitlines()[-1])
        assert used == level and len(found) == 2 and any(value != 0 for each in found for value in np.ravel(each))
        _PLAYED[level, dtype] = found
    return _PLAYED[level, dtype]


def test_a_mistake_in_the_variable_ends_a_command(tmp_path):
    command = [sys.executable, "-m", "neuroevo", "train", "smoke", "--out", str(tmp_path / "run")]
    environment = {**os.environ, cpu.VARIABLE: "x86-65"}
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert done.returncode == 2 and done.stderr.startswith("neuroevo: NEUROEVO_CPU is 'x86-65'")
    assert not (tmp_path / "run").exists()
