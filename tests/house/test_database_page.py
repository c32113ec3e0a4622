"""The queries of docs/reference/database.md find what a run has done, as its genomes and records say."""

import re
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial

import numpy as np
import pytest

import neuroevo
from docs.hooks.generated import generated
from neuroevo.runs.database import DATABASE
from tests.support.pages import ROOT

PAGE = (ROOT / "docs/reference/database.md").read_text()
QUERIES = dict(re.findall(r"^### (.+?)\n(?:(?!^###).)*?```sql\n(.+?)```", PAGE, re.MULTILINE | re.DOTALL))
LAST = 5


class Kept(neuroevo.Callback):
    """What the run itself has of its generations, while it is trained."""

    def __init__(self):
        self.played, self.novelties, self.records = [], [], []

    def population(self, generation, played, steps, novelties):
        self.played.append(played)
        self.novelties.append(novelties)

    def generation(self, record):
        self.records.append(record)

    def member(self, genome):
        """The generation and place in which a genome was a member first; None if it was none."""
        for generation, played in enumerate(self.played):
            if genome in played.genomes:
                return generation, list(played.genomes).index(genome)
        return None


def play(path, **algorithm):
    """A run in a maze, and what it has of its generations."""
    kept = Kept()
    tables = {
        "env": {"name": "hard_maze", "options": {"max_episode_steps": 60}},
        "network": {"name": "mlp", "hidden": [4]},
        "algorithm": {"population": 30, "parents": 4, "sigma": 0.3, "validation_candidates": 3, **algorithm},
        "training": {"seed": 1, "generations": LAST + 1, "validation_episodes": 2, "test_episodes": 3},
    }
    neuroevo.train(tables, out=path, callbacks=[kept])
    return path, kept


def answers(path, heading, **values):
    """The rows of the query below a heading."""
    with closing(sqlite3.connect(f"file:{path / DATABASE}?mode=ro", uri=True)) as connection:
        return connection.execute(QUERIES[heading], values).fetchall()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return play(tmp_path_factory.mktemp("queried") / "run", name="ga")


@pytest.fixture
def ask(run):
    return partial(answers, run[0])


@pytest.fixture
def kept(run):
    return run[1]


def test_there_are_ten():
    assert len(QUERIES) == 10 == PAGE.count("```sql\n")


def test_the_schema_is_that_of_the_code(run):
    text = generated("<!-- generated: schema -->")
    with closing(sqlite3.connect(":memory:")) as made, closing(sqlite3.connect(run[0] / DATABASE)) as found:
        made.executescript(text.removeprefix("```sql\n").removesuffix("```"))
        query = "SELECT sql FROM sqlite_schema ORDER BY name"
        assert made.execute(query).fetchall() == found.execute(query).fetchall()


def test_the_line_of_an_elite(ask, kept):
    line = list(kept.records[LAST].elite.line())[::-1]
    places = list(map(kept.member, line))
    assert len(line) > 2 and None not in places
    seeds = [(line[0].root, None), *((each.mutation.seed, each.mutation.scale) for each in line[1:])]
    fitness = [kept.played[generation].fitness[place] for generation, place in places]
    expected = [(*place, *seed, own) for place, seed, own in zip(places, seeds, fitness, strict=True)]
    assert ask("How did this elite come about?", generation=LAST) == expected


def test_the_largest_jump(ask, kept):
    jumps = {}
    for generation, played in enumerate(kept.played):
        for place, genome in enumerate(played.genomes):
            if genome.parent is not None:
                before, which = kept.member(genome.parent)
                jumps[generation, place] = played.fitness[place] - kept.played[before].fitness[which]
    ((generation, place, seed, scale, jump),) = ask("Which mutation made the largest jump of fitness?")
    assert jump == jumps[generation, place] == max(jumps.values())
    assert kept.played[generation].genomes[place].mutation[:2] == (seed, scale)


def test_fitness_of_each_generation(ask, kept):
    found = ask("What are best, mean and least fitness in each generation?")
    expected = [(played.fitness.max(), played.fitness.mean(), played.fitness.min()) for played in kept.played]
    assert [row[0] for row in found] == list(range(LAST + 1))
    np.testing.assert_allclose([row[1:] for row in found], expected, rtol=1e-12)


def test_depths(ask, kept):
    expected = Counter(genome.depth for genome in kept.played[LAST].genomes)
    assert len(expected) > 1
    assert ask("How many mutations do members have?", generation=LAST) == sorted(expected.items())


def test_descendants(ask, kept):
    played = kept.played[LAST]
    ancestor = played.genomes[0].parent.parent
    generation, place = kept.member(ancestor)
    expected = [
        (index, played.fitness[index]) for index, genome in enumerate(played.genomes) if ancestor in genome.line()
    ]
    assert 0 < len(expected) < 30
    values = {"generation": LAST, "ancestor_generation": generation, "ancestor_place": place}
    assert ask("Which members descend from a given one?", **values) == expected


def test_parents(ask, kept):
    everyone = {genome for played in kept.played for genome in played.genomes}
    parents = {genome.parent for genome in everyone} - {None}
    survived = {genome.parent for genome in parents} - {None}
    expected = Counter(kept.member(genome)[0] for genome in parents)
    lasting = Counter(kept.member(genome)[0] for genome in survived)
    assert ask("How many parents had surviving offspring?") == [
        (generation, count, lasting[generation]) for generation, count in sorted(expected.items())
    ]


def test_novelty(tmp_path):
    path, kept = play(tmp_path / "run", name="ga_ns", k=5)
    novelty, fitness = kept.novelties[LAST], kept.played[LAST].fitness
    fifths = np.argsort(novelty, kind="stable").reshape(5, 6)
    found = answers(path, "Are novel members fit?", generation=LAST)
    assert [row[:2] for row in found] == [(number, 6) for number in range(1, 6)]
    expected = np.stack([novelty[fifths].mean(axis=1), fitness[fifths].mean(axis=1)], axis=1)
    np.testing.assert_allclose([row[2:] for row in found], expected, rtol=1e-12)


def test_numbers_of_generations(ask, kept):
    rows = [record.row() for record in kept.records]
    assert ask("Is validation too optimistic?") == [
        (row["generation"], *(row[name] for name in ("validation_mean", "test_mean", "test_standard_error")),
         row["validation_mean"] - row["test_mean"])
        for row in rows
    ]  # fmt: skip
    before = [0.0, *(row["seconds_total"] for row in rows)]
    assert ask("What does a generation cost?") == [
        (row["generation"], row["steps_population"] + row["steps_validation"],
         row["seconds_total"] - before[row["generation"]], row["steps_per_s"], row["idle_share"])
        for row in rows
    ]  # fmt: skip
    assert rows[0]["sigma"] == 0.3
    assert ask("How did the algorithm's own numbers change?") == [
        (row["generation"], row["sigma"], row["fitness_max"]) for row in rows
    ]
