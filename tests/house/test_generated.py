"""The tables that the site has the code make: all that there is, with the values that the code has."""

import re
from dataclasses import fields
from importlib.metadata import version

import pytest

from docs.hooks import generated as module
from docs.hooks.generated import MADE, generated
from docs.hooks.outside import RESULTS, place_of, with_site_links
from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.schema import SECTIONS
from neuroevo.config.sources import presets
from neuroevo.envs.registry import FAMILIES
from neuroevo.networks.architectures import NETWORKS
from neuroevo.networks.layer_lines import core_layers
from neuroevo.sweeps.settings import SweepSettings
from tests.support.pages import PAGES, ROOT

COMMENTS = [
    found for path in PAGES for found in re.findall(r"^<!-- generated: (.+?) -->$", path.read_text(), re.MULTILINE)
]


def made(what):
    return generated(f"<!-- generated: {what} -->")


def rows(what):
    """A table's cells by what is in the first of each row."""
    cells = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in made(what).splitlines()[2:]]
    return {row[0].strip("`"): [cell.strip() for cell in row[1:]] for row in cells}


@pytest.mark.parametrize("what", sorted(set(COMMENTS)))
def test_what_pages_ask_for_is_made(what):
    text = made(what)
    assert text and "generated:" not in text


@pytest.mark.parametrize("what", ["keys trainig", "nothing", "keys env.options mujoco Pong"])
def test_what_there_is_not_is_an_error(what):
    with pytest.raises(KeyError, match="expected"):
        made(what)


def test_tested_versions_are_the_locked_ones():
    tested = rows("tested")
    assert tested["gymnasium"] == [version("gymnasium")] and tested["mujoco"] == [version("mujoco")]
    assert version("numpy") in " ".join(tested["numpy"])


def test_every_table_is_on_a_page():
    asked = {comment.removeprefix("keys ") for comment in COMMENTS if comment.startswith("keys ")}
    alike = {"algorithm.ns_es", "schedule.ConstantSchedule", "schedule.ExponentialSchedule"}  # as another on their page
    assert set(module._KEYS) - asked == alike
    assert set(MADE) == {comment.partition(" ")[0] for comment in COMMENTS}


def test_every_algorithm_and_family_has_a_page():
    algorithms = {path.stem for path in (ROOT / "docs/algorithms").glob("*.md")} - {"index", "evosax"}
    assert algorithms == {module._page(name) for name in ALGORITHMS}
    assert {path.stem for path in (ROOT / "docs/environments").glob("*.md")} - {"index"} == {
        family.family for family in FAMILIES
    }


def test_keys_have_their_defaults_and_values():
    training = rows("keys training")
    assert list(training) == [f"training.{field.name}" for field in fields(SECTIONS["training"])]
    assert training["training.validation_episodes"][:2] == ["`30`", "whole number >= 1"]
    assert training["training.generations"][0] == ""
    assert rows("keys hardware")["hardware.device"][:2] == ['`"auto"`', '"auto", "cpu", "gpu"']
    assert rows("keys algorithm.ga")["sigma"][:2] == ["`0.002`", "number > 0 or table"]
    assert rows("keys algorithm.es")["population"][:2] == ["`5000`", "whole number >= 1, even"]
    assert rows("keys env.options atari")["repeat_action_probability"][1] == r"number in \[0, 1\]"
    assert rows("keys env.options gymnasium")["kwargs"][:2] == ["", "table"]
    sweep = rows("keys sweep")
    assert list(sweep) == [field.name for field in fields(SweepSettings)]
    assert sweep["configs"][0] == "required"
    assert sweep["search"][:2] == ['`"grid"`', '"grid", "random", "tpe", "cmaes", "qmc", "pbt"']


def test_documentation_is_that_of_the_class_that_declares_a_key():
    assert "most novel" in rows("keys algorithm.ga_ns")["parents"][2]
    assert "Standard deviation of the noise" in rows("keys algorithm.low_rank_es")["sigma"][2]


def test_presets_networks_and_layers():
    assert list(rows("presets")) == list(presets())
    assert list(rows("networks")) == list(NETWORKS)
    for kind, (form,) in rows("layers").items():
        word = re.sub(r" ?\[.*?\]", "", form.strip("`"))  # without what may be left out
        line = word.replace("FILTERS", "8").replace("HEIGHTxWIDTH", "4x4").replace("UNITS", "8")
        assert core_layers([line])[0].startswith(kind)


def test_commands():
    text = made("commands")
    assert "\n## neuroevo evaluate\n" in text and "\n### neuroevo config check\n" in text
    assert "`--set KEY=VALUE`" in text and "a seed" not in text.partition("## neuroevo evaluate")[0]


def test_links_stay_within_the_site():
    text = (
        "[a](../../experiments/results/hard_maze.md#x) [b](../../CONTRIBUTING.md) [c](../start.md) `[d](../../LICENSE)`"
    )
    moved, shown = with_site_links(text, "docs/guides/gpu.md")
    assert moved == "[a](../results/hard_maze.md#x) [b](../contributing.md) [c](../start.md) `[d](../../LICENSE)`"
    assert not shown
    moved, shown = with_site_links("[e](../experiments/examples/cma_es.py)", "docs/start.md")
    assert moved == "[e](files/experiments/examples/cma_es.py.md)" and shown == {"experiments/examples/cma_es.py"}
    assert with_site_links("[f](docs/guides/gpu.md)", "CHANGELOG.md") == ("[f](guides/gpu.md)", set())
    assert with_site_links("![g](hard_maze.png)", f"{RESULTS}/hard_maze.md")[0] == "![g](hard_maze.png)"
    assert place_of("neuroevo/algorithms/es.py") == "files/neuroevo/algorithms/es.py.md"


def test_formulas():
    pytest.importorskip("latex2mathml", reason="the extra docs is not installed")
    from docs.hooks.formulas import with_formulas

    made = with_formulas("Here $`x^2`$ and\n\n```math\ny = \\frac{1}{2}\n```\n")
    assert made.count("<math") == 2 and "<msup>" in made and 'display="block"' in made and "$`" not in made
