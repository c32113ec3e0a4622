"""Every registered algorithm on a real environment: neither hardware nor an interruption changes results."""

from dataclasses import replace

import pytest

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.sessions.folder import RunFolder
from tests.algorithms.test_algorithms import SMALL
from tests.support import runs

GENERATIONS = 3


def config(name, **hardware):
    return runs.config(
        env={"name": "HardMaze-v0"},
        network={"name": "mlp", "hidden": [6]},
        algorithm={"name": name, **SMALL[name]},
        training={"generations": GENERATIONS, "max_episode_steps": 60},
        hardware=hardware,
    )


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_same_on_any_hardware_and_after_an_interruption(name, tmp_path):
    """test_algorithms.py interrupts runs in other phases."""
    whole, path = tmp_path / "whole", tmp_path / "stopped"
    runs.train(RunFolder.create(whole, config(name, lanes=1, slots=1, threads=1)))
    found = runs.results(whole)
    assert len(found["rows"]) == GENERATIONS
    assert len({tuple(row["fitness"]) for row in found["rows"]}) == GENERATIONS  # all generations differ
    short = config(name, lanes=3, slots=2, threads=4)
    runs.train(RunFolder.create(path, replace(short, training=replace(short.training, generations=2))))
    runs.train(RunFolder.resume(path, [f"training.generations={GENERATIONS}", "hardware.threads=2"]))
    assert runs.results(path) == found
