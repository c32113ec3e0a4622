"""What pip's build says where a machine lacks something: each by its name."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OFF = [f"-DNEUROEVO_{part}=OFF" for part in ("CUDA", "MUJOCO", "TF", "PGO")]


def configured(folder, *options, **variables):
    """What CMake says on stderr of a build for a wheel, which must fail."""
    beside = Path(sys.executable).parent
    command = [beside / "cmake", "-S", ROOT / "custom_ops", "-B", folder, "-G", "Ninja", *options, *OFF]
    command += [f"-DCMAKE_MAKE_PROGRAM={beside / 'ninja'}", "-DSKBUILD=2", f"-DPython_EXECUTABLE={sys.executable}"]
    run = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert run.returncode != 0
    return " ".join(run.stderr.split())


@pytest.mark.parametrize("compiler", ["no-such-g++", "/nowhere/g++ -m64"])
def test_without_a_compiler(compiler, tmp_path):
    said = configured(tmp_path, CXX=compiler)
    assert f"'{compiler}'" in said and "apt-get install -y g++" in said


def test_without_zlib_s_headers(tmp_path):
    said = configured(tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON")
    assert "zlib.h is missing: apt-get install -y zlib1g-dev" in said


def fetched(folder, **variables):
    """The emulator's sources, from wherever pip looks, without a network."""
    command = [sys.executable, ROOT / "custom_ops/cmake/fetch_ale.py", folder]
    offline = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", **variables}
    return subprocess.run(command, env={**os.environ, **offline}, capture_output=True, text=True)


def test_without_a_network(tmp_path):
    run = fetched(tmp_path / "build")
    assert run.returncode == 1
    assert all(said in run.stderr for said in ("sources of ale-py", "SHA-256", str(tmp_path), "PIP_FIND_LINKS"))
    if not list((ROOT / "build").glob("ale_py-*.tar.gz")):
        pytest.skip("the archive of ale-py's sources is not in build/")
    run = fetched(tmp_path / "build", PIP_FIND_LINKS=str(ROOT / "build"))  # as it says
    assert run.returncode == 0, run.stderr
    assert list((tmp_path / "build").glob("ale_py-*/src/ale/ale_interface.cpp"))
