"""Each preset loads, has a description and starts; unknown names have a helpful message."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neuroevo.algorithms.es import ES
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.optimizers import Adam
from neuroevo.cli import app
from neuroevo.config.load import load_config, make_config
from neuroevo.config.sources import description, presets
from neuroevo.core.errors import UserError
from neuroevo.system.reading import tomllib
from tests.support.runs import read_rows

PRESETS = Path(__file__).parents[2] / "neuroevo/config/presets"
NAMES = sorted(path.stem for path in PRESETS.glob("*.toml"))


def test_the_presets_are_the_files_of_their_folder():
    assert list(presets()) == NAMES
    assert {"demo", "frostbite_ga", "frostbite_ga_gymnasium", "frostbite_random_search", "smoke"} <= {*NAMES}
    assert {"halfcheetah_ga", "ant_ga", "humanoid_ga", "inverted_pendulum", "hopper"} <= {*NAMES}
    assert {"hard_maze_ga", "hard_maze_image_ga"} <= {*NAMES}
    assert {"es_frostbite", "es_humanoid", "es_inverted_pendulum"} <= {*NAMES}
    for name, path in presets().items():
        assert path.resolve() == PRESETS / f"{name}.toml"


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_loads_by_name_and_by_path_and_round_trips(name):
    config = load_config(name)
    assert config == load_config(PRESETS / f"{name}.toml")
    assert make_config(tomllib.loads(config.toml())) == config


def test_the_papers_humanoid():
    config = load_config("humanoid_ga")
    assert config.algorithm == GA(population=12_500, parents=625, sigma=0.00224, validation_candidates=10)
    assert (config.training.episodes, config.network.hidden, config.network.activation) == (5, (256, 256), "tanh")


def test_the_papers_evolution_strategies():
    """Such et al. 2017 on Atari; OpenAI's humanoid.json, whose 10,000 episodes are 5,000 pairs."""
    atari, humanoid = load_config("es_frostbite"), load_config("es_humanoid")
    assert atari.algorithm == ES(population=5000, sigma=0.02, optimizer=Adam(learning_rate=0.01), weight_decay=0.005)
    assert humanoid.algorithm == replace(atari.algorithm, population=10_000)
    assert (atari.network.name, atari.training.max_episode_steps, atari.training.total_steps) == (
        "virtual_bn",
        5000,
        250_000_000,
    )
    assert (humanoid.network.hidden, humanoid.network.activation) == ((256, 256), "tanh")


def test_descriptions_are_the_files_first_lines():
    result = CliRunner().invoke(app, ["config", "presets"])
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    for line, name in zip(lines, NAMES, strict=True):
        first = (PRESETS / f"{name}.toml").read_text().splitlines()[0]
        shown = line.removeprefix(name).strip()
        assert first == f"# {shown}" and shown.endswith(".") and len(line) <= 120
        assert shown == description(presets()[name])


def test_a_file_goes_before_the_preset_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smoke").mkdir()
    assert load_config("smoke").training.generations == 2
    (tmp_path / "smoke").rmdir()
    (tmp_path / "smoke").write_text('[env]\nname = "pong"\n[training]\ngenerations = 7\n')
    assert load_config("smoke").training.generations == 7


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("frostbyte_ga", r"; did you mean the preset frostbite_ga\? \(presets: ant_ga, "),
        ("zzz", r" \(presets: ant_ga, "),
        ("neuroevo/config/presets/smok.toml", r"; did you mean neuroevo/config/presets/smoke.toml\?$"),
        ("neuroevo/config/presets/smok.json", r"; did you mean neuroevo/config/presets/smoke.toml\?$"),
        ("nowhere/smok.toml", r"; did you mean the preset smoke\?$"),
        ("some/smoke", r"; did you mean the preset smoke\?$"),
    ],
)
def test_names_of_no_preset(name, ending):
    with pytest.raises(UserError, match=f"no configuration file .*{name}{ending}"):
        load_config(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_preset_starts(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    algorithm = load_config(name).algorithm
    changes = {"population": 4, "parents": 2, "validation_candidates": 2}
    sets = [f"algorithm.{key}={value}" for key, value in changes.items() if hasattr(algorithm, key)]
    sets += [
        "training.max_episode_steps=3",
        "training.validation_episodes=1",
        "training.test_episodes=0",
        "training.episodes=1",
    ]
    sets += ["training.generations=2", "hardware.threads=2"]
    result = CliRunner().invoke(app, ["train", name, *(word for change in sets for word in ("--set", change))])
    assert result.exit_code == 0, result.stderr
    (run,) = (tmp_path / "runs").iterdir()
    assert run.name.startswith(f"{name}-20")
    first, second = read_rows(run)
    centers, validation_candidates = (
        getattr(algorithm, "centers", None),
        2 if hasattr(algorithm, "validation_candidates") else 0,
    )
    played = (4, validation_candidates), (4, validation_candidates)
    if centers is not None:  # NS strategies first evaluate all centers, then the pairs of the center that moves
        played = (centers, centers), (4, 1)
    for row, (population, validation) in zip((first, second), played, strict=True):
        assert (row["steps_population"], row["steps_validation"]) == (population * 3, validation * 3)
    # No episode ends within 3 steps.
