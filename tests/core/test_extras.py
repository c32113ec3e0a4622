"""Error messages of an installation without an extra when its packages are needed."""

import sys

import pytest

import neuroevo
from neuroevo.analysis.network_export import FORMATS
from neuroevo.core.errors import UserError
from neuroevo.core.extras import missing
from neuroevo.rollout.engines import make_engine

BRAX = {"env": {"name": "brax:ant"}, "network": {"name": "mlp"}, "algorithm": {"name": "es"}}


def _train(folder, *changes):
    neuroevo.train("smoke", dict(changes), out=folder / "run")


NEEDS = {
    "tensorflow": ("tensorflow", lambda folder: make_engine("tensorflow", 1)),
    "brax": ("accelerated", lambda folder: neuroevo.make_config(BRAX)),
    "mujoco_playground": ("playground", lambda folder: _train(folder, ("env.name", "playground:CheetahRun"))),
    "onnx": ("onnx", lambda folder: FORMATS["onnx"].save(None, folder / "elite.onnx")),
    "huggingface_hub": ("hub", lambda folder: neuroevo.pull("me/run", folder / "run")),
    "ray": ("cluster", lambda folder: _train(folder, ("cluster.address", "local"))),
    "evosax": ("compare", lambda folder: _train(folder, ("algorithm.name", "evosax:SimpleES"))),
    "ribs": ("illuminate", lambda folder: _train(folder, ("algorithm.name", "ribs"))),
    "wandb": ("wandb", lambda folder: _train(folder, ("logging.trackers", ["wandb"]))),
    "mlflow": ("mlflow", lambda folder: _train(folder, ("logging.trackers", ["mlflow"]))),
}


@pytest.mark.parametrize("package", NEEDS)
def test_a_feature_names_the_extra_that_it_lacks(package, tmp_path, monkeypatch):
    extra, use = NEEDS[package]
    monkeypatch.setitem(sys.modules, package, None)  # as the import system has what cannot be imported
    with pytest.raises(UserError) as raised:
        use(tmp_path)
    message = f"{package} is not installed: pip install 'neuroevo[{extra}]'"
    assert message in str(raised.value)


def test_all_that_is_missing_is_named():
    assert missing("inspect", "json", "sys") is None
    assert missing("some", "json", "no_such", "nor_this") == (
        "no_such, nor_this are not installed: pip install 'neuroevo[some]'"
    )
