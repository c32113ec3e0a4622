"""The figure of the final positions of all episodes of runs in a maze."""

import sys

import numpy as np
import pytest
from PIL import Image

from experiments.maze_ends import ends, main, reached
from neuroevo.runs.members import MembersReader
from tests.inspector.conftest import MAZE, MLP, NOVELTY, TRAINING, played


def test_the_share_of_squares():
    positions = np.array([[0.0, 0.0], [9.9, 9.9], [10.0, 0.0], [39.9, 19.9], [40.0, 20.0], [-1.0, 0.0]])
    assert reached(positions, np.array([0.0, 0.0]), np.array([40.0, 20.0])) == 3 / 8


def test_a_panel_for_each_run(maze, es, tmp_path, monkeypatch, capsys):
    kept = MembersReader(maze)
    assert np.array_equal(ends(maze), np.concatenate([kept.read(generation).behaviors for generation in range(6)]))
    monkeypatch.setattr(sys, "argv", ["maze_ends", str(maze), str(es), "--out", str(tmp_path / "ends.png")])
    main()
    of_maze, of_es = capsys.readouterr().out.splitlines()
    assert "ga_ns, seed 1: 180 episodes" in of_maze and "es, seed 1: 48 episodes" in of_es
    with Image.open(tmp_path / "ends.png") as picture:
        assert picture.width > 1.5 * picture.height


def test_other_runs_are_refused(maze, atari, tmp_path, monkeypatch, capsys):
    training, logging = {**TRAINING, "generations": 1}, {"members_megabytes": 0}
    played(tmp_path / "without", env=MAZE, network=MLP, algorithm=NOVELTY, training=training, logging=logging)
    for run, said in (
        (atari, "is a run on frostbite, expected one in a maze"),
        (tmp_path / "without", "has no stored behaviors"),
    ):
        monkeypatch.setattr(sys, "argv", ["maze_ends", str(run)])
        with pytest.raises(SystemExit):
            main()
        assert said in capsys.readouterr().err
