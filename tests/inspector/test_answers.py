"""Data for the page against the runs' files, NumPy and replayed members."""

import base64
import shutil
from collections import Counter

import numpy as np
import pytest

from neuroevo.analysis.population import read_population
from neuroevo.core.errors import UserError
from neuroevo.inspector.inspection import Inspection, Missing
from neuroevo.inspector.payload import array, plain
from neuroevo.inspector.playing import Member
from neuroevo.inspector.rows import Rows
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.sweeps.study import Study
from tests.analysis.test_video import decode
from tests.inspector.conftest import MAZE, MLP, NOVELTY, TRAINING, configured, played, shortened
from tests.support.databases import change
from tests.support.runs import checkpoints_of, new_run, read_rows
from tests.support.sweeps import load

FEET = {"behavior": "contact"}
DTYPES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "i2": "<i2"}


def values(payload):
    """Decode an array of a payload."""
    return np.frombuffer(base64.b64decode(payload["data"]), DTYPES[payload["dtype"]])


def points(payload):
    """Return the points [P, 2] of a payload with x and y."""
    return np.stack([values(payload["x"]), values(payload["y"])], axis=1)


@pytest.mark.parametrize("dtype", DTYPES.values())
def test_arrays_are_what_they_were(dtype):
    given = np.array([[1, 2], [3, -4]], dtype)
    assert np.array_equal(values(array(given)), given.ravel())


def test_values_become_json():
    given = {"a": [1, 2.5, float("nan"), float("inf"), True, None], 3: np.float32(0.5), "when": complex(1)}
    assert plain(given) == {"a": [1, 2.5, None, None, True, None], "3": 0.5, "when": "(1+0j)"}


def test_the_cloud_of_a_maze_is_where_episodes_ended(maze, maze_page):
    cloud = maze_page.answer("cloud/0")
    assert cloud["kind"] == "position" and cloud["archive"]
    assert cloud["maze"]["goal"] == [31, 20] and cloud["maze"]["start"] == [36, 184]
    assert [4, 49, 7, 202] in cloud["maze"]["walls"] and len(cloud["maze"]["walls"]) == 13
    for generation in (0, 5):
        shown = maze_page.answer(f"generation/0/{generation}")
        known = read_population(RunReader(maze), generation, behaviors=True)
        assert np.allclose(points(shown), known.behaviors)
        assert np.array_equal(values(shown["fitness"]), known.fitness)
        novelty = MembersReader(maze).read(generation).novelty
        assert np.allclose(values(shown["novelty"]), novelty, equal_nan=True)
        assert (points(shown) >= cloud["low"]).all() and (points(shown) <= cloud["high"]).all()


@pytest.mark.parametrize(
    ("env", "kind", "titles"),
    [
        ({"name": "half_cheetah", "options": FEET}, "measures", ["contact of bfoot", "contact of ffoot"]),
        ({"name": "hopper", "options": FEET}, "track", ["contact of foot", "fitness"]),
        ({"name": "inverted_pendulum"}, "track", ["x", "fitness"]),
    ],
)
def test_axes_have_the_names_of_the_behavior_s_numbers(tmp_path, env, kind, titles):
    training = {**TRAINING, "generations": 2, "max_episode_steps": 30}
    path = played(tmp_path / "run", env=env, network=MLP, algorithm=NOVELTY, training=training)
    with Inspection([path]) as inspection:
        cloud = inspection.answer("cloud/0")
        shown = points(inspection.answer("generation/0/1"))
    assert (cloud["kind"], cloud["titles"], cloud["maze"]) == (kind, titles, None)
    assert cloud["archive"] == (kind == "measures")
    members = MembersReader(path).read(1)
    assert np.allclose(shown[:, 0], members.behaviors[:, 0])
    assert np.allclose(shown[:, 1], members.behaviors[:, 1] if kind == "measures" else members.fitness)


def test_the_cloud_of_a_game_is_the_principal_components_of_its_memory(atari):
    with Inspection([atari]) as inspection:
        cloud = inspection.answer("cloud/0")
        shown = np.concatenate([points(inspection.answer(f"generation/0/{number}")) for number in range(3)])
    members = MembersReader(atari)
    memory = np.concatenate([members.read(number).behaviors for number in range(3)]).astype(np.float64)
    centered = memory - memory.mean(axis=0)
    _, lengths, rows = np.linalg.svd(centered, full_matrices=False)
    expected = centered @ rows[:2].T
    assert cloud["kind"] == "components"
    assert np.allclose(np.abs(shown), np.abs(expected), atol=1e-3)
    assert f"({lengths[0] ** 2 / (lengths**2).sum():.0%} of the variance)" in cloud["titles"][0]


def test_the_line_of_a_member_is_its_genome_s(maze, maze_page):
    members = MembersReader(maze)
    for index in range(30):
        line = maze_page.answer(f"family/0/5/{index}")["line"]
        genomes = [members.genome(each["generation"], each["index"]) for each in line]
        assert genomes[0] == members.genome(5, index)
        assert [genome.parent for genome in genomes] == [*genomes[1:], None]
        assert [each["seed"] for each in line[:-1]] == [str(genome.mutations[-1][0]) for genome in genomes[:-1]]


def test_offspring_of_ancestors_are_counted(maze, maze_page):
    members = MembersReader(maze)
    children = Counter(
        (int(a), int(b)) for number in range(6) for a, b in members.read(number).parents if number and a >= 0
    )
    tree = maze_page.answer("family/0/5/3")
    line = tree["line"]
    assert [each["offspring"] for each in line] == [children[each["generation"], each["index"]] for each in line]
    assert tree["all"] == sum(each["offspring"] for each in line) - (len(line) - 1)
    assert len(values(tree["relatives"]["children"])) == 2 * tree["all"]


@pytest.mark.parametrize("begin", [0, 3])
def test_shares_of_descendants_are_those_of_members_lines(maze, maze_page, begin):
    members = MembersReader(maze)
    found = maze_page.answer(f"ancestors/0/{begin}")
    assert list(values(found["generations"])) == list(range(begin, 6))
    for at, generation in enumerate(range(begin, 6)):
        lines = [members.lineage(generation, index) for index in range(30)]
        from_there = [dict(line).get(begin) for line in lines]
        for each in found["ancestors"]:
            assert values(each["shares"])[at] == pytest.approx(from_there.count(each["index"]) / 30)
        assert values(found["older"])[at] == pytest.approx(from_there.count(None) / 30)
        assert values(found["left"])[at] == len(set(from_there) - {None})
        together = sum(values(each["shares"])[at] for each in found["ancestors"])
        assert together + values(found["others"])[at] + values(found["older"])[at] == pytest.approx(1)


def test_the_way_of_the_mean(maze_page):
    way = points(maze_page.answer("way/0")["mean"])
    for generation in range(6):
        assert np.allclose(way[generation], points(maze_page.answer(f"generation/0/{generation}")).mean(axis=0))


def test_the_archive_grows_as_the_metrics_say(maze, maze_page):
    shown = maze_page.answer("archive/0")
    kept = RunReader(maze).state().algorithm.archive.behaviors
    assert np.allclose(points(shown), kept)
    assert list(values(shown["sizes"])) == [row["archive"] for row in read_rows(maze)]


def test_cells_have_the_members_that_were_the_fittest_so_far(maze, maze_page):
    shown = maze_page.answer("cells/0")
    assert maze_page.answer("cloud/0")["cells"] and shown["shape"] == [50, 50]
    low, high = np.array(shown["low"]), np.array(shown["high"])
    best, expected = {}, []
    for members in MembersReader(maze).each():
        places = ((members.behaviors - low) // ((high - low) / 50)).astype(int)
        for index, (place, fitness) in enumerate(zip(places.tolist(), members.fitness, strict=True)):
            if fitness > best.get(tuple(place), -np.inf):
                best[tuple(place)] = fitness
                expected.append((members.generation, index, *place, fitness, members.novelty[index]))
    cells = values(shown["cell"]).reshape(-1, 2).T
    columns = (values(shown["generation"]), values(shown["index"]), *cells, values(shown["fitness"]))
    np.testing.assert_array_equal(np.stack(columns, axis=1), np.array(expected)[:, :5])
    np.testing.assert_allclose(values(shown["novelty"]), np.array(expected)[:, 5], rtol=1e-6)


def test_elites_are_cells_and_no_archive(tmp_path):
    maze = {"env": {"name": "hard_maze"}, "network": {"name": "mlp", "hidden": [4]}}
    elites = {"name": "map_elites", "population": 12, "cells": [4, 3], "low": [-3.0, -3.0], "high": [3.0, 3.0]}
    new_run(tmp_path / "run", algorithm=elites, **maze)
    with Inspection([tmp_path / "run"]) as page:
        cloud, shown = page.answer("cloud/0"), page.answer("cells/0")
        with pytest.raises(UserError, match="no archive of behaviors without fitness"):
            page.answer("archive/0")
    assert cloud["cells"] and not cloud["archive"] and "novelty" not in shown
    assert (shown["low"], shown["high"], shown["shape"]) == ([-3.0, -3.0], [3.0, 3.0], [4, 3])
    cells = [tuple(each) for each in values(shown["cell"]).reshape(-1, 2).tolist()]
    champions = dict(zip(cells, values(shown["fitness"]), strict=True))
    kept = RunReader(tmp_path / "run").state().algorithm.cells
    assert [champions[cell] for cell in sorted(champions)] == kept.fitness.tolist()


@pytest.mark.parametrize("member", [Member(0, 7, 0), Member(5, 0, 0), Member(5, 29, 0)])
def test_a_member_plays_as_it_did(maze, maze_page, member):
    played = maze_page.stage.play(0, member)
    assert played["state"] == "done", played
    kept = MembersReader(maze).read(member.generation)
    assert played["return"] == played["fitness"] == kept.fitness[member.index] and played["same"] is True
    assert played["steps"] == kept.steps[member.index] == len(values(played["actions"]["values"])) / 2
    assert played["actions"]["names"] == ["turn", "speed"]
    assert np.allclose(points(played["path"])[-1], kept.behaviors[member.index])
    assert played["genome"]["mutations"] == len(MembersReader(maze).genome(member.generation, member.index).mutations)
    frames = decode(maze_page.stage.video(played["file"]))
    assert frames.shape[1:] == (played["video"]["height"], played["video"]["width"], 3)
    assert len(frames) == played["steps"] + 1 and not (frames[0] == frames[-1]).all()


def test_a_member_of_evolution_strategies_plays_without_its_state(es):
    with Inspection([es]) as inspection:
        assert 2 not in checkpoints_of(es)
        played = inspection.stage.play(0, Member(2, 3, 0))
        assert played["same"] is True and played["genome"]["root"].startswith("sha256:")
        assert inspection.answer("generation/0/2")["center"] is True
        assert inspection.answer("family/0/2/3")["line"][0]["offspring"] == 0
        assert inspection.answer("ancestors/0/0")["ancestors"] == []


def test_a_game_s_actions(atari):
    with Inspection([atari]) as inspection:
        played = inspection.stage.play(0, Member(2, 1, 0))
    assert played["same"] is True and played["steps"] <= 40 and not played["actions"]["continuous"]
    taken = values(played["actions"]["values"])
    assert len(taken) == played["steps"] and 0 <= taken.min() <= taken.max() < played["actions"]["count"] == 18
    assert played["actions"]["names"][:3] == ["NOOP", "FIRE", "UP"] and len(played["actions"]["names"]) == 18


@pytest.mark.parametrize("damage", ["generations SET elite = elite + 1", "members SET genome = genome + 1"])
def test_damage_is_told_in_place_of_an_episode(maze, tmp_path, caplog, damage):
    run = shutil.copytree(maze, tmp_path / "run")
    with Inspection([run]) as inspection:
        change(run, f"UPDATE {damage} WHERE generation = 1")
        played = inspection.stage.play(0, Member(1, 0, 0))
    assert played["state"] == "failed"
    assert played["error"].startswith(f"{run / 'run.db'} is damaged: ") and "generation 1 " in played["error"]
    assert caplog.records == []


@pytest.mark.parametrize(
    ("damage", "of"),
    [
        ("seed = seed + 1", "a member"),
        ("scale = scale * 2", "a member"),
        ("parent = (SELECT min(id) FROM genomes)", "a member"),
        ("digest = zeroblob(16)", "a parent"),
        ("place = place + 1", "a parent"),
        ("generation = NULL, place = NULL", "a parent"),
    ],
)
def test_damaged_genomes_are_no_members(maze, tmp_path, damage, of):
    run = shutil.copytree(maze, tmp_path / "run")
    members = "SELECT genome FROM members WHERE generation = 5"
    parents = f"SELECT parent FROM genomes WHERE id IN ({members})"
    assert change(run, f"UPDATE genomes SET {damage} WHERE id IN ({members if of == 'a member' else parents})") > 1
    with Inspection([run]) as inspection:
        for name in ("generation/0/5", "way/0", "family/0/5/0"):
            with pytest.raises(UserError, match="run.db is damaged: .*genome "):
                inspection.answer(name)


def test_who_is_not_there_does_not_play(maze_page):
    for member, said in (
        (Member(6, 0, 0), "generation 6"),
        (Member(0, 30, 0), "member 30"),
        (Member(0, 0, 1), "episode 1"),
    ):
        played = maze_page.stage.play(0, member)
        assert played["state"] == "failed" and said in played["error"] and "out of range" in played["error"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("generation/0/6", "[0, 6)"),
        ("family/0/5/30", "[0, 30)"),
        ("ancestors/0/9", "generation 9"),
        ("curves/fitnes_max", "did you mean"),
    ],
)
def test_what_is_out_of_range_is_named(maze_page, name, said):
    with pytest.raises(UserError, match="expected|range") as error:
        maze_page.answer(name)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "name", ["", "generation/0", "generation/1/0", "generation/0/-1", "about/x", "about/1", "pages"]
)
def test_what_there_is_not(maze_page, name):
    with pytest.raises(Missing):
        maze_page.answer(name)


def test_curves_of_runs_that_differ_by_their_seed_are_one(maze, atari, tmp_path):
    other = configured(maze, tmp_path / "other", ("seed = 1", "seed = 2"))
    with Inspection([maze, atari, other]) as inspection:
        inspection.answer("overview")
        groups = inspection.answer("curves/fitness_max")["groups"]
    assert sorted(group["runs"] for group in groups) == [[0, 2], [1]]
    (maze_group,) = (group for group in groups if len(group["runs"]) == 2)
    expected = [row["fitness_max"] for row in read_rows(maze)]
    assert list(values(maze_group["generations"]["band"]["mean"])) == expected
    assert list(values(maze_group["steps"]["lines"][0]["x"])) == [row["steps_total"] for row in read_rows(maze)]


def test_rows_are_read_as_they_come(maze, tmp_path):
    rows, expected = Rows(tmp_path), read_rows(maze)
    for count, resumed in ((0, 0), (1, 0), (3, 0), (6, 0), (2, 1), (6, 1)):  # also fewer rows, as after resuming
        shortened(maze, tmp_path, count, resumed)
        rows.refresh()
        assert rows.problem == ""
        assert [row["fitness_max"] for row in rows.rows] == [row["fitness_max"] for row in expected[:count]]
        assert [list(each) for each in rows.fitness] == [row["fitness"] for row in expected[:count]]


def test_rows_that_were_read_outlast_damage(maze, tmp_path):
    rows = Rows(shortened(maze, tmp_path, 2))
    rows.refresh()
    shortened(maze, tmp_path, 6)
    change(tmp_path, "UPDATE generations SET fitness_max = 1e9 WHERE generation = 4")
    for _ in range(2):
        rows.refresh()
        assert len(rows.rows) == len(rows.fitness) == 2
        assert rows.problem == f"{tmp_path / 'run.db'} is damaged: generation 4 has been changed"
    shortened(maze, tmp_path, 6)
    rows.refresh()
    assert len(rows.rows) == 6 and rows.problem == ""


def test_a_run_without_members_shows_what_it_has(maze, tmp_path):
    changes = {"env": MAZE, "network": MLP, "algorithm": NOVELTY, "training": TRAINING}
    forgetful = played(tmp_path / "run", **changes, logging={"members_megabytes": 0})
    with Inspection([forgetful]) as inspection:
        inspection.answer("overview")
        shown = inspection.answer("cloud/0")
        assert (shown["kind"], shown["kept"]) == ("index", 0)
        shown = inspection.answer("generation/0/3")
        assert list(values(shown["fitness"])) == read_rows(maze)[3]["fitness"]
        assert list(points(shown)[:, 0]) == list(range(30)) and "parents" not in shown
        assert inspection.stage.play(0, Member(5, 3, 0))["same"] is True  # the state before the generation is stored
        assert "no longer available" in inspection.stage.play(0, Member(1, 3, 0))["error"]


def test_what_a_run_is(maze, maze_page):
    maze_page.answer("overview")
    with (maze / "log.txt").open("a") as file:
        file.write("2026-01-01 00:00:00,000 WARNING the sky is <b>blue</b>\n")
    shown = maze_page.answer("about/0")
    assert shown["settings"]["algorithm"]["sigma"] == 0.3
    assert shown["info"]["versions"]["numpy"] == np.__version__
    assert shown["warnings"] == ["2026-01-01 00:00:00,000 WARNING the sky is <b>blue</b>"]


def test_the_trials_of_a_sweep(maze, tmp_path):
    out, space = (
        tmp_path / "out",
        '"algorithm.sigma" = [0.1, 0.2, 0.3]\n"network.hidden" = [[4]]\n"training.seed" = [7]',
    )
    sweep = load(tmp_path, f'configs = "{maze / "config.toml"}"', space)
    out.mkdir()
    study = Study(out, new=True)
    study.begin(sweep, lambda trial: True)
    for _ in range(2):
        trial = study.ask(sweep)
        shutil.copytree(maze, out / trial.folder)
        study.tell(trial.number, "finished", 1.0)
    moved = out.rename(tmp_path / "moved")
    with Inspection([moved], trust=True) as inspection:
        names = [run["name"] for run in inspection.answer("overview")["runs"]]
        (shown,) = inspection.answer("sweep")["sweeps"]
    assert names == [trial.folder for trial in sweep.points[:2]]
    last = read_rows(maze)[-1]["validation_mean"]
    assert (shown["metric"], shown["keys"]) == ("validation_mean", ["algorithm.sigma", "network.hidden"])
    assert [(each["values"], each["metric"]) for each in shown["trials"]] == [([0.1, [4]], last), ([0.2, [4]], last)]
    assert [(each["trial"], each["status"]) for each in shown["trials"]] == [(0, "finished"), (1, "finished")]


def test_axes_are_fitted_anew_while_a_run_begins(maze, tmp_path):
    run = shutil.copytree(maze, tmp_path / "run")
    with Inspection([shortened(maze, run, 0)]) as inspection:
        assert inspection.answer("cloud/0")["kind"] == "index"
        shortened(maze, run, 6)
        inspection.answer("overview")
        assert inspection.answer("cloud/0")["kind"] == "position"


def test_a_robot_on_rails(tmp_path):
    algorithm = {"name": "ga", "population": 6, "parents": 2, "validation_candidates": 2}
    training = {"generations": 2, "validation_episodes": 1, "test_episodes": 1, "max_episode_steps": 30}
    run = played(
        tmp_path / "run", env={"name": "InvertedPendulum-v5"}, network=MLP, algorithm=algorithm, training=training
    )
    with Inspection([run]) as inspection:
        assert inspection.answer("cloud/0")["titles"] == ["x", "fitness"]
        shown = inspection.answer("generation/0/1")
    members = MembersReader(run).read(1)
    assert np.allclose(points(shown)[:, 0], members.behaviors[:, 0]) and (members.behaviors[:, 1] == 0).all()
    assert np.allclose(points(shown)[:, 1], members.fitness)
