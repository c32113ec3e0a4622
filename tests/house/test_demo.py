"""The demo with a toy evaluator: both runs, equal steps, the held-out comparison; and the end of a real one."""

import json

import numpy as np

from experiments.demo import CONFIG, compare, random_search_beside, show, table, verdict
from neuroevo.config.load import load_config
from neuroevo.core.genome import to_json
from neuroevo.core.randomness import held_out_seeds
from neuroevo.sessions.evaluators import make_evaluator
from tests.analysis.test_video import decode
from tests.support.runs import read_elites, read_rows
from tests.support.toy import ToyEvaluator

SMALL = [
    "algorithm.population=20",
    "algorithm.parents=4",
    "algorithm.sigma=0.2",
    "algorithm.validation_candidates=3",
    "training.validation_episodes=3",
    "training.total_steps=20_000",
]


def test_the_comparison(tmp_path, capsys):
    toy = ToyEvaluator()
    result = compare(load_config(CONFIG, SMALL), toy, tmp_path, random_search=True)
    ga, search = (read_rows(tmp_path / name) for name in ("ga", "random_search"))
    assert ga[-1]["steps_total"] >= 20_000 > ga[-2]["steps_total"]
    assert search[-1]["steps_total"] >= ga[-1]["steps_total"] > search[-2]["steps_total"]
    of_ga, of_search = (read_elites(tmp_path / name) for name in ("ga", "random_search"))
    elites = [genome for genome, _ in (of_ga[0], of_ga[-1], of_search[-1])]
    assert list(result["elites"].values()) == json.loads(json.dumps([to_json(elite) for elite in elites]))

    held_out = toy.calls[-1]
    assert [episode.genome for episode in held_out[::30]] == elites
    assert [episode.seed for episode in held_out] == held_out_seeds(30) * 3
    assert {episode.max_steps for episode in held_out} == {ga[-1]["max_episode_steps"]}
    assert not {episode.seed for call in toy.calls[:-1] for episode in call} & set(held_out_seeds(30))

    means = {name: np.mean(returns) for name, returns in result["returns"].items()}
    assert means["GA, last elite"] > means["random search's elite"] + 1
    assert means["GA, last elite"] > means["GA, generation 0's elite"] + 1
    assert json.loads((tmp_path / "comparison.json").read_text()) == result
    assert "GA, last elite won: it beat random search's elite by " in capsys.readouterr().out


def test_what_is_shown_at_the_end(tmp_path, capsys):
    """The real game, for two generations."""
    small = ["algorithm.population=4", "algorithm.parents=2", "algorithm.validation_candidates=2",
             "training.validation_episodes=2", "training.generations=2", "training.max_episode_steps=12"]  # fmt: skip
    config = load_config(CONFIG, small)
    with make_evaluator(config) as evaluator:
        result = compare(config, evaluator, tmp_path)
    assert result["generations"] == 2 and list(result["returns"]) == ["GA, generation 0's elite", "GA, last elite"]
    show(tmp_path)
    said = capsys.readouterr().out
    frames = decode(tmp_path / "elites.mp4")
    assert len(frames) > 12 and frames.shape[2] > frames.shape[1]  # two screens side by side
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    command = f"neuroevo train --resume {tmp_path / 'ga'} --set training.minutes=10"
    assert command in said and str(tmp_path / "curve.png") in said and str(tmp_path / "elites.mp4") in said


def test_random_search_differs_only_in_the_algorithm_and_the_budget():
    ga = load_config(
        CONFIG, ["training.generations=5", "hardware.threads=2", "env.options.repeat_action_probability=0.25"]
    )
    ours, theirs = random_search_beside(ga, 777).tables(), ga.tables()
    assert ours["algorithm"] == {
        "name": "random_search",
        "population": theirs["algorithm"]["population"],
        "validation_candidates": theirs["algorithm"]["validation_candidates"],
    }
    assert ours["training"].pop("total_steps") == 777
    theirs["training"].pop("minutes")
    theirs["training"].pop("generations")
    assert {**ours, "algorithm": None} == {**theirs, "algorithm": None}


def test_the_words():
    rows = {
        "first": np.array([1.0, 2.0, 3.0]),
        "second": np.array([5.0, 5.0, 11.0]),
        "third": np.array([0.0, 0.0, 3.0]),
    }
    assert verdict(rows) == (
        "second won: it beat first by 5.0 ± 1.5 and third by 6.0 ± 1.0 points an episode (mean ± standard error)."
    )
    assert table(rows).splitlines()[2].split() == ["second", "7.0", "2.0", "5", "11"]
    same = {"first": np.array([1.0, 2.0]), "second": np.array([2.0, 1.0])}
    assert verdict(same) == "A draw: first and second have the same mean."
