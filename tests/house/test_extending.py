"""The worked examples of docs/extending.md do what the page says."""

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.registry import find_algorithm
from neuroevo.config.load import load_config
from neuroevo.networks import architectures
from tests.support.runs import new_run, results
from tests.support.toy import ToyWeights

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL)


@pytest.fixture
def block():
    """The one example that holds a text."""

    def find(text):
        (found,) = [each for each in BLOCKS if text in each]
        return textwrap.dedent(found)

    return find


def test_the_algorithm_trains(block, tmp_path, monkeypatch):
    (tmp_path / "contributed_search.py").write_text(block("class HillClimber"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = "contributed_search:HillClimber"
    assert find_algorithm(name).__name__ == "HillClimber"
    algorithm = {"name": name, "population": 20, "sigma": 0.2}
    new_run(tmp_path / "run", algorithm=algorithm, training={"generations": 8})
    new_run(tmp_path / "again", algorithm=algorithm, training={"generations": 8})
    rows = results(tmp_path / "run")["rows"]
    assert rows == results(tmp_path / "again")["rows"]
    assert sum(row["improved"] for row in rows) >= 2 and rows[-1]["test_mean"] > rows[0]["test_mean"]
    climber, weights = find_algorithm(name)(**{"population": 3}), ToyWeights()
    state = climber.init(0)
    with pytest.raises(ValueError, match="genome 1 is nan"):
        climber.tell(state, EvaluatedPopulation(climber.ask(state, weights), np.array([0.0, np.nan, 0.0]), 1), weights)


def test_the_configuration_is_one(block, tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "extending.md").read_text(), re.DOTALL)
    (tmp_path / "mine.toml").write_text(text.replace('"my_search"', '"ga"'))  # which has a sigma too
    assert load_config(tmp_path / "mine.toml").training.generations == 10


def test_the_network_is_one(block):
    names = dict(vars(architectures))
    exec(block("def tiny("), names)
    layers = names["tiny"]("input uint8 84 84 4", 6)
    assert layers[0] == "input uint8 84 84 4" and layers[-2].startswith("dense 6 ")


def test_the_family_finds_its_environment(block):
    names = {}
    exec(block("class MyTask("), names)
    family = names["MyTask"]
    found = family.find(" my_task ")
    environment = family(found, "my_task", {"length": 5})
    assert not environment.problems and environment.options.length == 5
    assert (environment.spec.family, environment.spec.options) == ("my_task", ("length=5",))
    assert (environment.image_observations, environment.continuous_actions) == (False, True)
    assert family.gymnasium_ids() == {found: found} and found in family.listing()
    assert [problem.key for problem in family(found, "my_task", {"lenght": 5}).problems] == ["env.options.lenght"]
