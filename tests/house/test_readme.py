"""The README's Python scripts do what they are there for."""

import subprocess
import sys

from neuroevo.runs.reader import RunReader
from tests.support.pages import ROOT, blocks_of


def output_of(beginning, folder):
    """What the one script of the README that begins so prints."""
    (script,) = [block.text for block in blocks_of(ROOT / "README.md") if block.text.startswith(beginning)]
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_stepping(tmp_path):
    assert output_of("from gymnasium.wrappers.vector import RecordEpisodeStatistics", tmp_path) == ""


def test_training(tmp_path):
    *best, elite = output_of("import neuroevo", tmp_path).splitlines()
    reader = RunReader(tmp_path / "runs" / "mine")
    assert [float(line) for line in best] == [row["fitness_max"] for row in reader.rows()]
    assert reader.config.training.seed == 3 and best
    number, last = reader.elite()
    assert elite == f"{number} {last.genome}"
