"""Whole runs are identical on all engines, and TensorFlow is imported for its own engine only."""

import subprocess
import sys
from pathlib import Path

import pytest

import neuroevo
from neuroevo.core.errors import UserError
from neuroevo.rollout.engines import NATIVE, chosen_engine, make_engine
from neuroevo.sessions.folder import RunFolder
from tests.support.kinds_of_runs import KINDS, assert_three_generations
from tests.support.runs import config, results, train

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
import neuroevo
from neuroevo.sessions.evaluators import make_evaluator
run = neuroevo.train(neuroevo.load_config({file!r}), out={out!r})
assert len(run.rows()) == 2
print([name for name in ("tensorflow", "jax", "brax", "flax") if name in sys.modules])
"""


# Other tests of this folder compare each kind of episodes, such as those of test_virtual_bn_runs.py, on both engines.
OTHERS = ["es with vbn", "low_rank_es with a normalizer"]


@pytest.mark.parametrize(
    "kind", ["ga_ns", "ga in integers", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in OTHERS)]
)
def test_runs_are_the_same(kind, tmp_path):
    found = {}
    for engine in ("native", "tensorflow"):
        neuroevo.train(config(**KINDS[kind], hardware={"engine": engine}), out=tmp_path / engine)
        found[engine] = results(tmp_path / engine)
    assert_three_generations(found["native"])
    assert found["native"] == found["tensorflow"]


def test_a_run_goes_on_with_the_other_engine(tmp_path):
    kind = {**KINDS["ga_ns"], "hardware": {"engine": "tensorflow"}}
    neuroevo.train(config(**kind), out=tmp_path / "whole")
    begun = {**kind, "training": {**kind["training"], "generations": 1}}
    neuroevo.train(config(**begun), out=tmp_path / "parts")
    train(RunFolder.resume(tmp_path / "parts", ["hardware.engine=native", "training.generations=3"]))
    assert results(tmp_path / "parts") == results(tmp_path / "whole")


def test_a_run_imports_no_other_framework(tmp_path):
    kind = KINDS["ga_ns"]
    changes = {
        **kind,
        "training": {**kind["training"], "generations": 2},
        "hardware": {"device": "cpu"},
    }
    file = tmp_path / "run.toml"
    file.write_text(config(**changes).toml())
    program = PROGRAM.format(file=str(file), out=str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.splitlines()[-1:], done.returncode) == (["[]"], 0), done.stderr


def test_which_is_chosen():
    assert [chosen_engine(name) for name in ("auto", "native", "tensorflow")] == ["native", "native", "tensorflow"]
    assert make_engine("auto", 2) is NATIVE
    with pytest.raises(UserError, match="engine 'nativ' is unknown; did you mean native\\?, expected auto, native or"):
        chosen_engine("nativ")
