"""Every registered algorithm on a real environment: neither hardware nor an interruption changes results."""

from dataclasses import replace

import pytest

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.sessions.folder import RunFolder
from tests.algorithms.test_algorithms import SMALL
from tests.support import runs

LAYOUTS = [(1, 1, 1), (3, 2, 4)]  # lanes, slots per lane, threads
GENERATIONS = 4


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
    found = []
    for lanes, slots, threads in LAYOUTS:
        path = tmp_path / f"{lanes}-{slots}-{threads}"
        runs.train(RunFolder.create(path, config(name, lanes=lanes, slots=slots, threads=threads)))
        found.append(runs.results(path))
    assert found[1:] == found[:-1]
    assert len(found[0]["rows"]) == GENERATIONS
    assert len({tuple(row["fitness"]) for row in found[0]["rows"]}) == GENERATIONS  # all generations differ
    path, short = tmp_path / "stopped", config(name)
    runs.train(RunFolder.create(path, replace(short, training=replace(short.training, generations=2))))
    runs.train(RunFolder.resume(path, [f"training.generations={GENERATIONS}", "hardware.threads=2"]))
    assert runs.results(path) == found[0]
