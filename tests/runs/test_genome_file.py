"""A genome file stands for the elite that it was exported from, in every command that needs only an elite."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import neuroevo
from neuroevo.cli import app
from neuroevo.core.errors import NotTrustedError, UserError
from neuroevo.core.genome import Center, Genome, Graft, LowRank, Scaled, from_json, grow, to_json

MAZE = {
    "env": {"name": "hard_maze", "options": {"max_episode_steps": 40}},
    "network": {"name": "mlp", "hidden": [4]},
    "algorithm": {"name": "ga", "population": 8, "parents": 3, "sigma": 0.3, "validation_candidates": 2},
    "training": {"seed": 1, "generations": 3, "validation_episodes": 2, "test_episodes": 2},
}
FROSTBITE = {
    "env": {"name": "frostbite"},
    "training": {**MAZE["training"], "max_episode_steps": 40, "test_episodes": 0},
}
SEARCH = {"name": "regularized_evolution", "population": 6, "offspring": 4, "network_mutation": 0.9}
RUNS = {  # what an evaluation depends on besides the weights
    "maze": MAZE,
    "normalizer": MAZE | {"env": {"name": "Hopper-v5"}, "network": {**MAZE["network"], "normalize_observations": True}},
    "reference batch": MAZE | FROSTBITE | {"network": {"name": "virtual_bn"}},
    "int8": MAZE | FROSTBITE | {"network": {"name": "model", "dtype": "int8"}},
}
seeds = st.integers(0, 2**63 - 1)
grafts = st.builds(lambda number: Graft(f"input float32 3; dense {number} 1.0"), st.integers(1, 9))
genomes = st.builds(
    lambda root, network, line, end: grow(Genome(root, network), [*line, *end]),
    seeds,
    st.integers(0, 3) | st.just("input float32 3; dense 10 1.0"),
    st.lists(st.tuples(seeds, st.floats(-1, 1, width=32)), max_size=9),
    st.lists(st.tuples(seeds, st.floats(-1, 1, width=32), grafts | st.builds(LowRank, st.integers(1, 64))), max_size=1),
)


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    return neuroevo.train(RUNS[request.param], out=tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def maze(tmp_path_factory):
    """The text of a genome file, for tests that change it."""
    folder = tmp_path_factory.mktemp("maze")
    neuroevo.train(MAZE, out=folder / "run").export(folder / "elite.toml")
    return (folder / "elite.toml").read_text()


def invoke(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def outcomes(run):
    found = run.evaluate(episodes=5, max_episode_steps=60).outcomes
    return found.returns.tolist(), found.steps.tolist()


def test_it_plays_as_the_run_does(run, tmp_path):
    for generation in (0, 2):
        path = tmp_path / f"{generation}.toml"
        run.export(path, generation)
        read = neuroevo.open_run(path)
        assert read.elite() == read.elite(generation) == run.elite(generation)
        assert np.array_equal(read.weights(), run.weights(generation))
        assert read.config == run.config and path.stat().st_size < 3_000
    assert outcomes(read) == outcomes(run)
    again = tmp_path / "again.toml"
    read.export(again)
    assert again.read_bytes() == path.read_bytes()


def test_commands_read_it(run, tmp_path):
    path = tmp_path / "elite.toml"
    made = invoke("export", run.path, "--format", "genome", "--out", path)
    assert made.exit_code == 0 and made.stdout.startswith(f"wrote {path}: elite of generation 2, "), made.stderr
    play = ["--max-episode-steps", 20]
    shown = [invoke("evaluate", each, "--episodes", 2, *play) for each in (run.path, path)]
    assert shown[0].exit_code == 0 and shown[0].stdout == shown[1].stdout, shown[1].stderr
    if run.config.env.name == "frostbite":  # the maze has no screens, and a robot needs a graphics library
        films = [tmp_path / f"{number}.gif" for number in range(2)]
        for source, film in zip((run.path, path), films, strict=True):
            assert invoke("render", source, "--out", film, *play).exit_code == 0
        assert films[0].read_bytes() == films[1].read_bytes()
    assert invoke("export", path, "--format", "npz").exit_code == 0
    assert (tmp_path / "elite-000002.npz").is_file()


def test_commands_that_need_more_say_so(maze, tmp_path):
    path = tmp_path / "elite.toml"
    path.write_text(maze)
    for words in (["plot", path], ["inspect", path, "--export", tmp_path / "page"], ["push", path, "me/elite"]):
        result = invoke(*words)
        assert result.exit_code == 2, (words, result.output)
        assert "is a genome file, which has only an elite" in result.stderr or "there is no run in" in result.stderr
    result = invoke("evaluate", path, "--generation", 1)
    assert result.exit_code == 2 and "generation 1 is not in" in result.stderr and "expected 2" in result.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_elites_made_of_weights_have_none(tmp_path):
    run = neuroevo.train(MAZE | {"algorithm": {"name": "es", "population": 8}}, out=tmp_path / "run")
    with pytest.raises(UserError, match="the elite of generation 2 is made of weights"):
        run.export(tmp_path / "elite.toml")
    assert list(tmp_path.iterdir()) == [tmp_path / "run"]


def test_own_networks(tmp_path):
    run = neuroevo.train(MAZE | {"algorithm": SEARCH}, out=tmp_path / "run")
    run.export(tmp_path / "elite.toml")
    read = neuroevo.open_run(tmp_path / "elite.toml")
    assert read.elite() == run.elite() and outcomes(read) == outcomes(run)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[genome]", "[genomes]", r"has no table \[genome\], expected a genome file or a run's folder"),
        ("generation = 2", "generation = -1", "generation is -1, expected a whole number of at least 0"),
        ("generation = 2", "generation = true", "generation is true"),
        ("generation = 2", "generations = 2", "expected generation, mutations, network, root"),
        ("generation = 2", "generation = 2\n[more]\n", "its last table has the keys"),
        ("network = 0", "network = -1", "network of a genome is -1"),
        ("network = 0", "network = 1", "is 1, expected 0"),
        ("network = 0", 'network = "input"', "is input, expected 0 with ga"),
        ("mutations = [", "mutations = 3\nnormalizer = [", "mutations of a genome are 3, expected a list"),
        ("mutations = [", "mutations = [[], ", r"mutation 0 of a genome is \[\]"),
        ("mutations = [", "mutations = [[1, 0.1], ", "scale is 0.1, expected a number of 32 bits"),
        ("mutations = [", "mutations = [[1, nan], ", "scale is nan"),
        ("mutations = [", "mutations = [[-1, 0.5], ", "seed of a genome is -1"),
        ("mutations = [", "mutations = [[1, 0.5, 'low rank 65'], ", "rank of a mutation is 65"),
        ("mutations = [", "mutations = [[1, 0.5, 'scaled'], ", "its kind is scaled, expected 'low rank'"),
        ("mutations = [", "mutations = [[1, 0.5, 2, 3], ", "mutation 0 of a genome is"),
        ("mutations = [", "mutations = [", None),
        ("root = ", "root = -", "root of a genome is -"),
        ("root = ", "root = 'sha256:' # ", "root of a genome is sha256:, expected a whole number"),
        ("[env]", "[environment]", "environment"),
        ("[env]", "]", "not valid TOML"),
        ("[genome]", "[genome]\n]", "not a genome file"),
    ],
)  # fmt: skip
def test_damaged_files(maze, tmp_path, old, new, message):
    path = tmp_path / "elite.toml"
    assert old in maze
    path.write_text(maze.replace(old, new, 1))
    result = invoke("evaluate", path, "--episodes", 1)
    assert result.exit_code == (0 if message is None else 2), result.output
    if message is not None:
        assert result.stdout == "" and str(path) in result.stderr.replace("\n", "")
        with pytest.raises(UserError, match=message):
            neuroevo.open_run(path).evaluate(1)


def test_a_normalizer_of_another_shape(tmp_path):
    run = neuroevo.train(RUNS["normalizer"], {"training.generations": 1}, out=tmp_path / "run")
    run.export(tmp_path / "elite.toml")
    text = (tmp_path / "elite.toml").read_text()
    for change in ("mean = [1.0, ", "mean = [nan, ", "mean = ['x', ", "mean = [[1.0], "):
        (tmp_path / "elite.toml").write_text(text.replace("mean = [", change))
        with pytest.raises(UserError, match="is not a genome file"):
            neuroevo.open_run(tmp_path / "elite.toml")


def test_external_code_needs_trust_wherever_the_file_is(maze, tmp_path):
    """Not even the folder of a run that this user made makes it trusted: it may be a download."""
    run = neuroevo.train(MAZE, {"training.generations": 1}, out=tmp_path / "run")
    text = maze.replace('name = "mlp"', 'name = "absent_module:network"')
    for folder in (run.path, tmp_path):
        (folder / "elite.toml").write_text(text)
        with pytest.raises(NotTrustedError, match="absent_module"):
            neuroevo.open_run(folder / "elite.toml")


@given(genomes)
def test_json_keeps_genomes(genome):
    assert from_json(to_json(genome)) == genome


@given(
    st.fixed_dictionaries(
        {
            "root": st.none() | seeds | st.integers() | st.text(),
            "network": st.none() | st.integers() | st.text() | st.lists(st.integers()),
            "mutations": st.none() | st.lists(st.none() | st.lists(seeds | st.floats() | st.text() | st.none())),
        }
    )
)
def test_json_that_is_no_genome_is_refused(values):
    with contextlib.suppress(ValueError):
        assert to_json(from_json(values)) == values


def test_json_of_centers_is_refused():
    center = Center([1.0, 2.0])
    for genome in (Genome(center), Genome(1).child(2, 0.5, Scaled(center))):
        with pytest.raises(ValueError, match="sha256"):
            from_json(to_json(genome))
