"""Maps of behaviors against a loop over members, and errors of `plot --map`."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import neuroevo
from neuroevo.analysis.behavior_maps import behavior_map, improvements, plot_maps
from neuroevo.cli import app
from neuroevo.core.errors import UserError
from neuroevo.runs.members import MembersReader
from tests.support.runs import new_run

MAZE = {"env": {"name": "hard_maze"}, "network": {"name": "mlp", "hidden": [4]}}
ELITES = {
    "name": "map_elites",
    "population": 12,
    "cells": [4, 3],
    "low": [-2.0, -1.0],
    "high": [2.0, 2.0],
    "sigma": 0.5,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("maps")
    new_run(path / "elites", algorithm=ELITES, **MAZE)
    new_run(path / "ga", **MAZE)
    new_run(path / "pong", env={"name": "pong", "options": {"behavior": [4]}})
    return path


def best_of_cells(path, low, high, shape):
    best = {}
    for members in MembersReader(path).each():
        for behavior, fitness in zip(members.behaviors, members.fitness, strict=True):
            places = [
                min(max(int((value - least) // ((most - least) / count)), 0), count - 1)
                for value, least, most, count in zip(behavior, low, high, shape, strict=True)
            ]
            best[tuple(places)] = max(best.get(tuple(places), -math.inf), fitness)
    return best


def test_cells_have_the_highest_fitness_of_any_member(folder):
    found = behavior_map(neuroevo.open_run(folder / "elites"))
    assert found.names == ("x", "y") and found.fitness.shape == (4, 3)
    best = best_of_cells(folder / "elites", ELITES["low"], ELITES["high"], ELITES["cells"])
    assert {place: found.fitness[place] for place in zip(*np.nonzero(~np.isnan(found.fitness)), strict=True)} == best
    assert found.coverage == len(best) / 12
    state = neuroevo.open_run(folder / "elites").state().algorithm
    assert sorted(state.cells.fitness) == sorted(best.values())
    turned = behavior_map(neuroevo.open_run(folder / "elites"), axes=(1, 0))
    assert turned.names == ("y", "x")
    np.testing.assert_array_equal(turned.fitness, found.fitness.T)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-1e308, -2.5, 0.0, 1.0, 1.0 + 2**-52, 1e308])), max_size=30)
)
def test_improvements_are_those_of_a_loop(played):
    best, expected = {}, []
    for place, (cell, fitness) in enumerate(played):
        if cell not in best or fitness > best[cell]:
            best[cell] = fitness
            expected.append(place)
    cells, fitness = (np.array([each[at] for each in played], dtype) for at, dtype in ((0, np.int64), (1, np.float64)))
    assert improvements(cells, fitness).tolist() == expected


def test_members_of_a_map_are_those_of_the_run(folder):
    found = behavior_map(neuroevo.open_run(folder / "elites"))
    reader = MembersReader(folder / "elites")
    for (generation, index), cell, fitness in zip(found.members, found.cells, found.scores, strict=True):
        members = reader.read(generation)
        assert members.fitness[index] == fitness
        assert found.grid.cells(members.behaviors[[index]]).tolist() == [cell.tolist()]
    assert (np.diff(found.members[:, 0]) >= 0).all() and len(found.members) > len(set(map(tuple, found.cells)))


def test_a_grid_is_that_of_every_algorithm_with_cells(tmp_path):
    pytest.importorskip("ribs")
    ribs = {**ELITES, "name": "ribs", "emitters": 3}
    new_run(tmp_path / "ribs", algorithm=ribs, **MAZE)
    grid = behavior_map(neuroevo.open_run(tmp_path / "ribs")).grid
    assert (grid.low, grid.high, grid.shape) == ((-2.0, -1.0), (2.0, 2.0), (4, 3))


def test_other_algorithms_have_the_environments_bounds(folder):
    run = neuroevo.open_run(folder / "ga")
    found, measures = behavior_map(run), run.config.environment.measures
    assert found.grid.low == tuple(each.low for each in measures) and found.fitness.shape == (50, 50)
    rows = [row["fitness_max"] for row in run.rows()]
    assert np.nanmax(found.fitness) == max(rows)


def test_a_figure_has_a_panel_for_each_run(folder):
    runs = [neuroevo.open_run(folder / name) for name in ("elites", "ga")]
    *panels, colors = plot_maps(runs).axes
    assert [panel.get_title().partition(":")[0] for panel in panels] == ["map_elites, seed 4", "ga, seed 4"]
    assert panels[0].get_xlabel() == "x" and colors.get_ylabel() == "highest fitness in the cell"
    drawn = panels[0].collections[0].get_array()
    np.testing.assert_array_equal(np.ma.filled(drawn, np.nan).reshape(3, 4), behavior_map(runs[0]).fitness.T)


def test_the_command(folder, tmp_path):
    out = tmp_path / "map.png"
    told = CliRunner().invoke(app, ["plot", str(folder / "elites"), str(folder / "ga"), "--map", "--out", str(out)])
    assert told.exit_code == 0 and f"wrote {out}: 2 runs by behavior" in told.stdout and out.stat().st_size > 5000
    told = CliRunner().invoke(
        app, ["plot", str(folder / "ga"), "--map", "--y", "sigma", "--out", str(tmp_path / "b.png")]
    )
    assert told.exit_code == 2 and "--y sigma: not supported with --map" in told.stderr


def test_what_has_no_map(folder, tmp_path):
    with pytest.raises(UserError, match="pong has 1 measures, expected two for a map"):
        behavior_map(neuroevo.open_run(folder / "pong"))
    new_run(tmp_path / "none", logging={"members_megabytes": 0}, **MAZE)
    with pytest.raises(UserError, match="has no behaviors of its members"):
        behavior_map(neuroevo.open_run(tmp_path / "none"))
