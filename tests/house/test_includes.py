"""Include rules of C++: the rules hold, and each kind of violation is reported."""

import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent
ROOT = HOUSE.parents[1]

# A small tree without violations.
TREE = {
    "core/error.h": "#include <string>",
    "gpu/device.h": '#include "core/error.h"',
    "gpu/runtime.h": '#include "gpu/nvcc/runtime.h"',
    "gpu/nvcc/runtime.h": '#include "gpu/device.h"',
    "envs/env.h": '#include "core/error.h"',
    "envs/atari/atari.cc": '#include "envs/env.h"',
    "networks/network.h": '#include "core/error.h"',
    "population/population.h": '#include "networks/network.h"',
    "population/cpu/population.cc": '#include "population/population.h"',
    "population/cuda/population.h": '#include "population/population.h"',
    "population/cuda/conv.cu": '#include "gpu/runtime.h"',
    "tf/ops.cc": '#include "tensorflow/core/framework/op.h"',
}


def check(root: Path) -> tuple[int, list[str]]:
    run = subprocess.run([sys.executable, HOUSE / "check_includes.py", root], capture_output=True, text=True)
    assert run.stderr == ""
    return run.returncode, run.stdout.splitlines()


def plant(root: Path, **more: str) -> Path:
    for name, text in {**TREE, **more}.items():
        path = root / "custom_ops" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// A line before.\n{text}\n")
    return root


def test_the_repository():
    assert check(ROOT) == (0, ["Includes in custom_ops/ follow the rules."])


def test_a_tree_as_it_should_be(tmp_path):
    assert check(plant(tmp_path))[0] == 0


@pytest.mark.parametrize(
    ("file", "include", "wrong"),
    [
        ("population/rows.cc", '"envs/env.h"', "custom_ops/population may not include custom_ops/envs (envs/env.h)"),
        ("core/trace.cc", '"gpu/device.h"', "custom_ops/core may not include custom_ops/gpu (gpu/device.h)"),
        (
            "population/cpu/plan.cc",
            '"population/cuda/population.h"',
            "custom_ops/population/cpu may not include custom_ops/population/cuda (population/cuda/population.h)",
        ),
        (
            "population/rows.cc",
            "<tensorflow/core/framework/tensor.h>",
            "custom_ops/population may not include TensorFlow (tensorflow/core/framework/tensor.h)",
        ),
        ("envs/mujoco/ant.cc", '"task.h"', "there is no custom_ops/task.h"),
        (
            "envs/mujoco/ant.cc",
            "<core/../envs/env.h>",
            "custom_ops/envs/mujoco may not include custom_ops/core/../envs",
        ),
    ],
)
def test_a_breach_is_named(tmp_path, file, include, wrong):
    status, lines = check(plant(tmp_path, **{file: f"#include {include}"}))
    assert status == 1
    assert lines[0].startswith(f"custom_ops/{file}:2: {wrong}")


def test_circles(tmp_path):
    status, lines = check(plant(tmp_path, **{"core/trace.h": '#include "networks/network.h"'}))
    assert status == 1
    assert lines[-1] == "folders include each other in a circle: core -> networks -> core"


def test_a_folder_without_a_rule(tmp_path):
    status, lines = check(plant(tmp_path, **{"misc/util.h": ""}))
    assert (status, lines) == (1, ["custom_ops/misc/util.h: custom_ops/misc has no rule in check_includes.py"])


def test_a_root_without_sources(tmp_path):
    assert check(tmp_path) == (1, [f"{tmp_path}/custom_ops has no .h, .cc or .cu files"])
