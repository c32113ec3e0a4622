"""Import of TensorFlow without the optional dependencies of Keras."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from neuroevo.rollout.tensorflow_import import skip_optional_imports, load_tensorflow
skip_optional_imports()
load_tensorflow()
assert "tensorflow" in sys.modules and not sys.modules.keys() & {"matplotlib", "scipy", "jax"}
import matplotlib.pyplot  # is there for who wants it
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
with LocalEvaluator("HardMaze-v0", Network(name="mlp", hidden=(4,)), threads=1, engine="tensorflow") as evaluator:
    print(int(evaluator.evaluate([Episode(Genome(1), 1, 20)]).steps[0]))
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_a_lean_import_plays_and_hides_nothing_for_good():
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("20\n", 0), done.stderr
    assert "loading" not in done.stderr


@pytest.mark.slow
def test_somebody_who_looks_is_told(tmp_path):
    """A message is printed before the import on a terminal, but not into a pipe, such as that of the other test."""
    program = "from neuroevo.rollout.tensorflow_import import *\nskip_optional_imports()\nload_tensorflow()"
    (tmp_path / "tensorflow.py").touch()  # whose import takes no time; the message comes before it
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, stderr=theirs, env=environment)
    os.close(theirs)
    assert os.read(ours, 4096).startswith(b"neuroevo: loading TensorFlow, which takes a few seconds\r\n")
    os.close(ours)
