"""Runs of low_rank_es on a robot: learning, evaluating, exporting, replaying."""

import pytest
from typer.testing import CliRunner

from neuroevo.analysis.replay import Replay
from neuroevo.cli import app
from neuroevo.core.episode import Episode
from neuroevo.core.genome import LowRank
from neuroevo.core.problems import ConfigError
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import read_rows
from tests.support.runs import config, results, train

CHANGES = {
    "env": {"name": "InvertedPendulum-v5"},
    "network": {"name": "mlp", "hidden": [8], "normalize_observations": True},
    "algorithm": {"name": "low_rank_es", "population": 40, "sigma": 0.1, "optimizer": {"learning_rate": 0.1}},
    "training": {"seed": 0, "max_episode_steps": 200, "generations": 4, "validation_episodes": 1, "test_episodes": 5},
    "hardware": {"threads": 2, "lanes": 2, "slots": 4},
}


def folder_of(path, **changes):
    return RunFolder.create(path, config(**{**CHANGES, **changes}))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    train(folder_of(path))
    return path


def test_it_learns(tmp_path):
    train(folder_of(tmp_path / "run", training={**CHANGES["training"], "generations": 12}))
    fitness = [row["fitness_mean"] for row in read_rows(tmp_path / "run")]
    assert max(fitness[-3:]) > 4 * fitness[0]


def test_another_rank_is_another_run(run, tmp_path):
    train(folder_of(tmp_path / "run", algorithm={**CHANGES["algorithm"], "rank": 3}))
    assert results(tmp_path / "run") != results(run)


def test_it_starts_from_another_run_and_others_from_it(run, tmp_path):
    """low_rank_es starts from a GA's elite with a chain of Gaussian mutations, and a GA starts from its center."""
    ga = {"name": "ga", "population": 8, "parents": 2, "sigma": 0.1, "validation_candidates": 2}
    train(folder_of(tmp_path / "ga", algorithm=ga))
    for name, algorithm, start in (("low", CHANGES["algorithm"], tmp_path / "ga"), ("high", ga, run)):
        training = {**CHANGES["training"], "generations": 2, "start_from": str(start)}
        train(folder_of(tmp_path / name, algorithm=algorithm, training=training))
        assert len(read_rows(tmp_path / name)) == 2


def test_the_elite_is_evaluated_and_exported(run, tmp_path):
    for command in (
        ["export", str(run), "--format", "npz", "--out", str(tmp_path / "elite.npz")],
        ["evaluate", str(run), "--episodes", "3"],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output


def test_members_are_replayed_bit_for_bit(run):
    """Rendering also replays members outside of the pipeline."""
    reader = RunReader(run)
    _, elite = reader.elite()
    members = [elite.genome.child(seed, scale, LowRank(1)) for seed in (1, 2) for scale in (0.25, -0.25)]
    genomes = [members[0], elite.genome, *members[1:]]
    with make_evaluator(reader.config) as evaluator:
        played = evaluator.evaluate([Episode(genome, 3, 80, elite.normalizer) for genome in genomes])
    *_, last = Replay(reader.config, genomes, elite.normalizer).play(3, 80)
    assert last.returns.tolist() == played.returns.tolist()


def test_the_accelerator_refuses_it():
    brax = config(env={"name": "brax:ant"}, network={"name": "mlp"}, algorithm={"name": "low_rank_es"})
    with pytest.raises(ConfigError, match="low rank") as raised:
        make_evaluator(brax)
    assert [problem.key for problem in raised.value.problems] == ["algorithm.name"]
