"""Files that Brax saved, played as Brax plays them: real files of brax.io.model."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from neuroevo.analysis.brax_policy import read_policy
from neuroevo.core.errors import UserError
from neuroevo.native.population import Population
from neuroevo.networks.network import Network

WIDTHS = (16, 8)


def save(path, normalized, observations=11, actions=3):
    """A random policy of Brax's es; returns what it answers to observations, in [-1, 1]."""
    import jax
    from brax.io import model
    from brax.training.acme import running_statistics
    from brax.training.agents.es import networks

    made = networks.make_es_networks(observations, actions, running_statistics.normalize, hidden_layer_sizes=WIDTHS)
    weights = made.policy_network.init(jax.random.PRNGKey(3))
    statistics = running_statistics.init_state(jax.ShapeDtypeStruct((observations,), np.float32))
    if normalized:
        seen = np.random.default_rng(1).normal(0.5, 2, (50, observations)).astype(np.float32)
        statistics = running_statistics.update(statistics, seen)
    model.save_params(str(path), (statistics, weights))
    act = networks.make_inference_fn(made)((statistics, weights), deterministic=True)
    return lambda batch: np.asarray(act(batch, jax.random.PRNGKey(0))[0])


@pytest.mark.parametrize("normalized", [False, True])
def test_actions_are_those_of_brax(tmp_path, normalized):
    pytest.importorskip("brax")
    act = save(tmp_path / "policy", normalized)
    policy = read_policy(tmp_path / "policy")
    assert (policy.observation_size, policy.hidden, policy.outputs) == (11, list(WIDTHS), 6)
    elite = policy.elite(11, 3)
    observations = np.random.default_rng(0).normal(0, 1, (20, 11)).astype(np.float32)
    seen = elite.normalizer(observations) if normalized else observations
    population = Population([Network("mlp", hidden=WIDTHS, activation="relu").vector_text(11, 3)], 1)
    population.assign([0], [0], elite.genome.root.vector[None])
    own = [population.forward([0], each[None], population.outputs)[0] for each in seen]
    np.testing.assert_allclose(own, act(observations), atol=2e-6)
    assert (elite.normalizer is not None) == normalized


def evaluate(*words):
    command = [sys.executable, "-m", "neuroevo", "evaluate", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_plays_a_file(tmp_path):
    pytest.importorskip("brax")
    save(tmp_path / "policy", True)
    run = evaluate(tmp_path / "policy", "--env", "Hopper-v5", "--episodes", "3", "--set", "network.activation=tanh")
    assert run.returncode == 0, run.stderr
    assert "policy: hidden layers of 16 and 8 with tanh" in run.stdout and "mean:" in run.stdout
    run = evaluate(tmp_path / "policy", "--env", "Ant-v5")
    assert run.returncode == 2 and "sees 11 numbers, expected 105" in run.stderr
    run = evaluate(tmp_path / "policy")
    assert run.returncode == 2 and "expected --env" in run.stderr
    run = evaluate(tmp_path / "policy", "--env", "Hopper-v5", "--set", "network.hidden=[3]")
    assert run.returncode == 2 and "expected env.options.KEY or network.activation=VALUE" in run.stderr


MISFIT = {"kernel": np.ones((1, 1)), "bias": np.ones(2)}


class Harm:
    def __reduce__(self):
        return os.mkdir, ("harm",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (pickle.dumps(Harm()), "asks for (posix|nt).mkdir, which no policy of Brax needs"),
        (b"no pickle", "cannot be read"),
        (b"", "cannot be read"),
        (pickle.dumps((None, {"params": {}})), "expected two or more dense layers"),
        (pickle.dumps((None, {"weights": 1})), "has no weights of dense layers"),
        (pickle.dumps((None, {"params": dict.fromkeys(["hidden_0", "hidden_1"], MISFIT)})), "that fit each other"),
    ],
    ids=["harmful", "text", "empty", "no-layers", "no-weights", "other-shapes"],
)  # fmt: skip
def test_other_files_are_refused_and_run_nothing(tmp_path, monkeypatch, content, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(UserError, match=reason):
        read_policy(tmp_path / "file")
    assert not (tmp_path / "harm").exists()


def test_a_truncated_file_is_refused(tmp_path):
    pytest.importorskip("brax")
    save(tmp_path / "policy", False)
    whole = (tmp_path / "policy").read_bytes()
    (tmp_path / "policy").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match="cannot be read"):
        read_policy(tmp_path / "policy")
