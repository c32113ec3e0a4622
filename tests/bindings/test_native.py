"""Arrays with a wrong shape or dtype never reach the native core, which would access memory beyond them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuroevo.core.errors import NativeError
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.networks import architectures

SMALL = "input float32 2 3; dense 5 1.0; bias; tanh; dense 2 0.1; bias"  # D = 47
SMALLER = "input float32 2 3; dense 2 1.0"  # D = 12


WITHOUT_MAZE = """
from neuroevo.core.errors import NativeError
from neuroevo.envs import registry
from neuroevo.native.env_pool import EnvPool
try:
    EnvPool(registry.resolve("hard_maze"), 1)
except NativeError as error:
    print(error)
EnvPool(registry.resolve("frostbite"), 1)
"""


@pytest.fixture(scope="module")
def pool() -> EnvPool:
    """4 environments with the full 18 actions, each in an episode."""
    made = EnvPool(registry.resolve("frostbite"), 4)
    made.reset(range(4), range(4), [0] * 4)
    return made


@pytest.mark.parametrize("size", [0, 63, 40_000])
def test_a_library_that_was_cut_off_is_named(tmp_path: Path, size: int) -> None:
    """In a separate process, which loading the library would crash."""
    shutil.copytree(library.LIBRARY_FOLDER, tmp_path, dirs_exist_ok=True)
    cut = tmp_path / "libneuroevo_hard_maze.so"
    os.truncate(cut, size % cut.stat().st_size)
    environment = {**os.environ, "NEUROEVO_LIB_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_MAZE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("libneuroevo_hard_maze.so cannot be loaded (") and done.returncode == 0, done.stderr


@pytest.fixture
def population() -> Population:
    """Rows 0 and 1 are filled, row 2 is not."""
    made = Population([SMALL, SMALLER], 3)
    made.init([0, 1], [0, 1], [5, 6])
    return made


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


POOL_CALLS = [
    ("reset", ([0, 1, 2, 3], [7], [0]), "seeds has shape [1], expected [4]"),
    ("reset", ([0, 1], [7, 8], [0]), "max_frames has shape [1], expected [2]"),
    ("reset", ([0], [7, 8], [0]), "seeds has shape [2], expected [1]"),
    ("reset", ([[0, 1]], [7], [0]), "slots has shape [1, 2], expected [K]"),
    ("reset", ([0, 1], [7, 8], [0, 0], [-1]), "normalizers has shape [1], expected [2]"),
    ("actions", (np.zeros(18),), "outputs has shape [18], expected [K, W]"),
    ("observe_normalized", (0,), "slots has shape [], expected [K]"),
    ("set_normalizer", (0, np.zeros((1, 2)), np.ones(2)), "mean has shape [1, 2], expected [n]"),
    ("set_normalizer", (0, np.zeros(2), np.ones(3)), "std has shape [3], expected [2]"),
    ("drop_normalizers", (0,), "numbers has shape [], expected [K]"),
    ("step", ([0, 1, 2, 3], [0]), "actions has shape [1], expected [4]"),
    ("step", ([0, 1], [[0], [0]]), "actions has shape [2, 1], expected [2]"),
    ("step", (0, [0]), "slots has shape [], expected [K]"),
    ("observe", ([[0], [1]],), "slots has shape [2, 1], expected [K]"),
    ("behavior", (0,), "slots has shape [], expected [K]"),
    ("render", (0,), "slots has shape [], expected [K]"),
]

POPULATION_CALLS = [
    ("init", ([0, 1], [0], [5, 6]), "networks has shape [1], expected [2]"),
    ("init", ([0, 1], [0, 1], [5]), "seeds has shape [1], expected [2]"),
    ("init", (0, [0], [5]), "rows has shape [], expected [K]"),
    ("assign", ([0, 1], [0], zeros(2, 47)), "networks has shape [1], expected [2]"),
    ("assign", ([0, 1], [0, 1], zeros(1, 47)), "thetas has shape [1, 47], expected [2, 47]"),
    ("assign", ([1], [1], zeros(1, 12)), "thetas has shape [1, 12], expected [1, 47]"),
    ("assign", ([0], [0], zeros(47)), "thetas has shape [47], expected [1, 47]"),
    ("read", ([[0, 1]],), "rows has shape [1, 2], expected [K]"),
    ("perturb", ([0, 1], [0], [5, 6], [1, 1]), "src has shape [1], expected [2]"),
    ("perturb", ([0, 1], [0, 1], [5], [1, 1]), "seeds has shape [1], expected [2]"),
    ("perturb", ([0, 1], [0, 1], [5, 6], [1]), "scales has shape [1], expected [2]"),
    ("perturb", ([[0, 1]], [0, 1], [5, 6], [1, 1]), "dst has shape [1, 2], expected [K]"),
    ("perturb", ([0, 1], [0, 1], [5, 6], [1, 1], [-1]), "spreads has shape [1], expected [2]"),
    ("forward", ([0, 1], zeros(1, 2, 3), 2), "observations has shape [1, 2, 3], expected [2, 2, 3]"),
    ("forward", ([0], zeros(1, 2, 2), 2), "observations has shape [1, 2, 2], expected [1, 2, 3]"),
    ("forward", ([0], zeros(1, 6), 2), "observations has shape [1, 6], expected [1, 2, 3]"),
    ("forward", ([0], np.zeros((1, 2, 3), np.uint8), 2), "observations have dtype uint8, expected float32"),
    ("forward", ([0], np.zeros((1, 2, 3)), 2), "observations have dtype float64, expected float32"),
    ("forward", ([0], zeros(1, 2, 3), 1), "outputs is 1, expected 2 as the networks have"),
    ("forward", ([0], zeros(1, 2, 3), 3), "outputs is 3, expected 2 as the networks have"),
]


@pytest.mark.parametrize(("call", "arguments", "message"), POOL_CALLS)
def test_bad_calls_of_a_pool_change_nothing(pool: EnvPool, call: str, arguments: tuple, message: str) -> None:
    before = pool.behavior(range(4))
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(pool, call)(*arguments)
    assert np.array_equal(pool.behavior(range(4)), before)


@pytest.mark.parametrize(("call", "arguments", "message"), POPULATION_CALLS)
def test_bad_calls_of_a_population_change_nothing(
    population: Population, call: str, arguments: tuple, message: str
) -> None:
    before = population.read([0, 1])
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(population, call)(*arguments)
    assert np.array_equal(population.read([0, 1]), before)
    with pytest.raises(NativeError, match="row 2 "):
        population.read([2])


def test_no_slots_and_no_rows_are_calls_like_any_other(pool: EnvPool, population: Population) -> None:
    pool.reset([], [], [])
    assert [len(part) for part in pool.step([], [])] == [0, 0]
    assert pool.observe([]).shape == (0, 84, 84, 4)
    population.init([], [], [])
    population.assign([], [], zeros(0, 47))
    population.perturb([], [], [], [])
    assert population.read([]).shape == (0, 47)
    assert population.forward([], zeros(0, 2, 3), 2).shape == (0, 2)


def test_rows_of_different_networks_take_the_same_observations(population: Population) -> None:
    """Outputs compared with NumPy's for the weights read, also for a row that got its network from another row."""
    population.perturb([2], [1], [9], [0.5])
    observations = np.arange(18, dtype=np.float32).reshape(3, 2, 3) / 18
    outputs = population.forward([0, 1, 2], observations, 2)
    deep, *shallow = population.read([0, 1, 2])
    hidden = np.tanh(observations[0].ravel() @ deep[:30].reshape(6, 5) + deep[30:35])
    np.testing.assert_allclose(outputs[0], hidden @ deep[35:45].reshape(5, 2) + deep[45:], rtol=1e-5)
    for output, observation, theta in zip(outputs[1:], observations[1:], shallow, strict=True):
        np.testing.assert_allclose(output, observation.ravel() @ theta[:12].reshape(6, 2), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "dtype", "shape", "outputs"),
    [
        (architectures.to_text(architectures.large_model("input uint8 84 84 4", 18)), "uint8", (84, 84, 4), 18),
        (architectures.to_text(architectures.mlp("input float32 8", 3)), "float32", (8,), 3),
        ("input float32 7 9 2; conv 5 3 3 2 same 1.0; bias;", "float32", (7, 9, 2), 4 * 5 * 5),
        ("input uint8 7 9 2; conv 5 3 2 2 valid 1.0; relu", "uint8", (7, 9, 2), 3 * 4 * 5),
        ("input float32 2 3; bias", "float32", (2, 3), 6),
    ],
)
def test_a_population_knows_its_inputs_and_outputs(text: str, dtype: str, shape: tuple, outputs: int) -> None:
    population = Population([text], 1)
    assert population.observation_dtype == dtype
    assert population.observation_shape == shape
    assert population.outputs == outputs
    population.init([0], [0], [1])
    assert population.forward([0], np.ones((1, *shape), dtype), outputs).shape == (1, outputs)


def test_objects_that_outlive_the_names_of_their_modules_are_freed_in_silence(monkeypatch):
    """As when a library keeps them alive until Python exits."""
    made = [Population([SMALL], 2), EnvPool(registry.resolve("hard_maze"), 2)]
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    for module in ("population", "env_pool"):
        monkeypatch.setattr(f"neuroevo.native.{module}.core", None)
    made.clear()
    assert raised == []
