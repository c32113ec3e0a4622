"""Every member of every generation, its parent and its results; genomes and behaviors within a budget."""

from itertools import pairwise

import numpy as np
import pytest

import neuroevo
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, grow
from neuroevo.runs.members import MembersReader
from neuroevo.runs.paths import LOG
from neuroevo.sessions.folder import RunFolder
from tests.support.databases import change, delete_states_after, query
from tests.support.runs import config, interrupted_run, new_run, play, read_rows, results

GA = {"name": "ga", "population": 12, "parents": 3, "sigma": 0.2, "validation_candidates": 3}
ES = {"name": "es", "population": 8, "sigma": 0.1}
LOW_RANK = {"name": "low_rank_es", "population": 8, "sigma": 0.1, "rank": 2}
RANDOM = {"name": "random_search", "population": 6, "validation_candidates": 3}
KINDS = {each["name"]: each for each in (GA, ES, LOW_RANK, RANDOM)}
MAZE = {
    "env": {"name": "hard_maze", "options": {"max_episode_steps": 60}},
    "network": {"name": "mlp", "hidden": [4]},
    "algorithm": GA,
    "training": {"seed": 1, "generations": 2, "test_episodes": 2, "episodes": 2},
}
LINE = """
WITH RECURSIVE line (depth, id) AS (
  SELECT 0, elite FROM generations WHERE generation = ?
  UNION ALL SELECT depth + 1, parent FROM line JOIN genomes USING (id) WHERE parent IS NOT NULL
)
SELECT generation, place, seed FROM line JOIN genomes USING (id) ORDER BY depth
"""  # of an elite, back to its root
ELITES = "SELECT digest FROM generations JOIN genomes ON id = elite ORDER BY generations.generation"


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def algorithm(request):
    return request.param


@pytest.fixture
def asked(monkeypatch):
    """Record the genomes that algorithms return from ask(), a list for each generation."""
    found = []

    def note(algorithm):
        ask = type(algorithm).ask

        def noted(self, state, *more):
            found.append(ask(self, state, *more))
            return found[-1]

        monkeypatch.setattr(type(algorithm), "ask", noted)
        return found

    return note


def test_every_member_is_known_with_its_parent_and_its_fitness(tmp_path, asked, algorithm):
    made = config(algorithm=algorithm)
    populations = asked(made.algorithm)
    play(RunFolder.create(tmp_path, made))
    reader, rows, first = MembersReader(tmp_path), read_rows(tmp_path), {}
    assert reader.generations == len(rows) == len(populations)
    elites = [digest for (digest,) in query(tmp_path, ELITES)]
    for generation, genomes in enumerate(populations):
        for place, genome in enumerate(genomes):
            first.setdefault(genome, (generation, place))
        members = reader.read(generation)
        assert reader.genomes(generation) == genomes
        assert reader.genome(generation, 1) == genomes[1]
        np.testing.assert_array_equal(members.fitness, rows[generation]["fitness"])
        assert members.steps.sum() == rows[generation]["steps_population"]
        assert reader.elite(generation) == {each.digest: at for each, at in first.items()}.get(elites[generation])
        assert [tuple(each) for each in members.parents] == [first.get(each.parent, (-1, -1)) for each in genomes]
        last = [each.mutation or (each.root, 0.0) for each in genomes]
        assert members.seeds.tolist() == [each[0] for each in last]
        np.testing.assert_array_equal(members.scales, np.array([each[1] for each in last], np.float32))
        assert set(members.centers) == {each.root.name for each in genomes if isinstance(each.root, Center)}
    born = query(tmp_path, "SELECT digest, generation, place FROM genomes WHERE generation IS NOT NULL")
    assert {digest: place for digest, *place in born} == {each.digest: list(place) for each, place in first.items()}
    assert len(born) == len(first)  # one row per genome, however often it was a member
    with pytest.raises(
        UserError, match=rf"member {len(genomes)} of generation 0 is out of range \[0, {len(genomes)}\)"
    ):
        reader.genome(0, len(genomes))


def test_an_elite_comes_from_members_back_to_generation_0(tmp_path):
    new_run(tmp_path, algorithm=GA, training={"generations": 6})
    reader, elite = MembersReader(tmp_path), neuroevo.open_run(tmp_path).elite()[1].genome
    rows = query(tmp_path, LINE, 5)
    line = [(generation, place) for generation, place, _ in rows]
    assert reader.lineage(*line[0]) == line and len(line) == len(elite.mutations) + 1 > 2
    assert [seed for *_, seed in rows] == [each.seed for each in elite.mutations[::-1]] + [elite.root]
    assert [reader.genome(*each) for each in line] == [
        grow(Genome(elite.root), elite.mutations[:count]) for count in range(len(elite.mutations), -1, -1)
    ]
    assert all(younger[0] > older[0] for younger, older in pairwise(line))


def test_parents_that_had_no_offspring_for_a_while_are_found(tmp_path):
    few = {**GA, "population": 4, "parents": 3}  # not every member descends from the elite
    new_run(tmp_path, algorithm=few, training={"generations": 12, "seed": 5})
    reader = MembersReader(tmp_path)
    before = [(g, i) for g in range(2, 12) for i in range(4) if 0 <= reader.read(g).parents[i][0] < g - 1]
    assert before
    for g, i in before:
        assert reader.genome(*reader.read(g).parents[i]) == reader.genome(g, i).parent


def test_a_run_that_starts_from_another_says_whose_offspring_its_members_are(tmp_path):
    new_run(tmp_path / "first", algorithm=GA)
    new_run(tmp_path / "second", algorithm=GA, training={"start_from": str(tmp_path / "first"), "generations": 2})
    second = MembersReader(tmp_path / "second")
    assert (second.read(0).parents == -1).all()
    known = {digest for (digest,) in query(tmp_path / "first", "SELECT digest FROM genomes WHERE place IS NOT NULL")}
    assert {genome.parent.digest for genome in second.genomes(0)} <= known


def test_behaviors_are_those_of_each_episode(tmp_path):
    run = neuroevo.train(MAZE, out=tmp_path)
    members = MembersReader(tmp_path).read(1)
    assert members.behaviors.shape == (12, 2)
    assert MembersReader(tmp_path).read(1, behaviors=False).behaviors is None
    goal = 31, 20
    one = neuroevo.train(MAZE, {"training.episodes": 1}, out=tmp_path / "one")
    ends = MembersReader(one.path).read(1)
    np.testing.assert_allclose(-ends.fitness, np.hypot(*(ends.behaviors - goal).T), atol=1e-3)
    assert [genome.mutations for genome in run.population(1).genomes]


@pytest.mark.parametrize("name", ["ga_ns", "ns_es"])
def test_novelty_is_what_the_algorithm_measured(tmp_path, name):
    more = {"parents": 3} if name == "ga_ns" else {"centers": 2}
    algorithm = {"name": name, "population": 12, "sigma": 0.3, "k": 3, **more}
    rows = neuroevo.train({**MAZE, "algorithm": algorithm}, {"training.generations": 4}, out=tmp_path).rows()
    reader = MembersReader(tmp_path)
    for row in rows[1:]:
        novelty = reader.read(row["generation"]).novelty
        assert (novelty.mean(), novelty.max()) == (row["novelty_mean"], row["novelty_max"])
    assert (reader.read(0).novelty is None) == (name == "ns_es")


def test_a_fork_begins_with_the_members_of_the_other(tmp_path):
    new_run(tmp_path / "first", algorithm=GA)
    play(RunFolder.fork(tmp_path / "fork", tmp_path / "first", ["training.generations=7"], generation=4))
    first, fork = MembersReader(tmp_path / "first"), MembersReader(tmp_path / "fork")
    assert fork.generations == 7
    for generation in range(4):
        assert fork.genomes(generation) == first.genomes(generation)
        np.testing.assert_array_equal(fork.read(generation).parents, first.read(generation).parents)
    assert fork.lineage(6, 0)[-1][0] == 0


def test_without_a_budget_fitness_and_steps_are_kept_alone(tmp_path):
    rows = neuroevo.train(MAZE, {"logging.members_megabytes": 0}, out=tmp_path).rows()
    assert query(tmp_path, "SELECT count(genome), count(dtype) FROM members, populations") == [(0, 0)]
    for row in rows:
        of = query(
            tmp_path, "SELECT fitness, steps FROM members WHERE generation = ? ORDER BY place", row["generation"]
        )
        fitness, steps = zip(*of, strict=True)
        assert list(fitness) == row["fitness"] and sum(steps) == row["steps_population"]
    reader = MembersReader(tmp_path)
    assert reader.generations == 0 and reader.kept() == []
    with pytest.raises(UserError, match="the members of generation 1 are not stored"):
        reader.read(1)


def test_what_does_not_fit_is_left_out_behaviors_first(tmp_path):
    """In the same generations of an interrupted run, although its file has grown by rows that were deleted again."""
    changes = {
        "algorithm": {**GA, "population": 1000},
        "logging": {"members_megabytes": 1},
        "training": {"generations": 13},
        "checkpoints": {"every": 4},
    }
    whole, path = tmp_path / "whole", tmp_path / "parts"
    new_run(whole, **changes)
    interrupted_run(path, 10, **changes)
    delete_states_after(path, 4)
    play(RunFolder.resume(path))
    assert results(path) == results(whole)
    of_members = "(SELECT count(genome) FROM members WHERE members.generation = populations.generation)"
    kept = query(path, f"SELECT {of_members}, length(behaviors) FROM populations ORDER BY generation")
    with_behaviors, with_genomes = sum(size is not None for _, size in kept), sum(count == 1000 for count, _ in kept)
    assert [size is not None for _, size in kept] == [True] * with_behaviors + [False] * (13 - with_behaviors)
    assert [count for count, _ in kept] == [1000] * with_genomes + [0] * (13 - with_genomes)
    assert with_behaviors / with_genomes == pytest.approx(0.75, abs=0.1) and with_genomes < 13
    assert "are not kept from generation" in (path / LOG).read_text()
    query(path, "VACUUM INTO ?", str(tmp_path / "small.db"))
    assert 0.9e6 < (tmp_path / "small.db").stat().st_size < 1.4e6


def test_a_damaged_generation_is_named(tmp_path):
    new_run(tmp_path, algorithm=GA)
    assert change(tmp_path, "UPDATE members SET steps = steps + 1 WHERE generation = 2 AND place = 7") == 1
    reader = MembersReader(tmp_path)
    with pytest.raises(UserError, match="run.db is damaged: the members of generation 2 have been changed"):
        reader.read(2)
    assert len(reader.read(3)) == 12


ES_RUNS = {
    "es": ES,
    "low_rank_es": LOW_RANK,
    "sgd": {**ES, "optimizer": {"type": "sgd", "learning_rate": 0.1, "momentum": 0.9}},
}


@pytest.mark.parametrize("algorithm", ES_RUNS.values(), ids=ES_RUNS)
def test_centers_without_a_state_are_told_anew(tmp_path, asked, algorithm):
    made = neuroevo.make_config(
        {**MAZE, "algorithm": algorithm}, {"training.generations": 6, "checkpoints.keep_last": 1}
    )
    populations = asked(made.algorithm)
    run = neuroevo.train(made, out=tmp_path)
    assert 6 in run.checkpoints() and 1 not in run.checkpoints()
    for generation in (1, 3):
        expected = populations[generation]
        genomes = run.population(generation).genomes
        assert genomes == expected
        if generation == 3 and isinstance(genomes[0].root, Center):
            np.testing.assert_array_equal(genomes[0].root.vector, expected[0].root.vector)
    _, elite = run.elite(2)
    assert not isinstance(elite.genome.root, Center) or elite.genome.root.has_weights
    assert run.evaluate(generation=2, episodes=2).summary.mean == neuroevo.evaluate(tmp_path, 2, 2).summary.mean


def test_centers_that_depend_on_validation_are_not_told_anew(tmp_path):
    novelty = {"name": "ns_es", "population": 8, "sigma": 0.1, "k": 2, "centers": 2}
    changes = {"training.generations": 4, "checkpoints.keep_last": 1}
    run = neuroevo.train({**MAZE, "algorithm": novelty}, changes, out=tmp_path)
    with pytest.raises(UserError, match="depends on validation episodes"):
        run.algorithm_state(2)
    assert MembersReader(tmp_path).read(2).behaviors.shape == (8, 2)


def test_centers_cannot_be_told_anew_without_the_members(tmp_path, monkeypatch):
    tables, read = {**MAZE, "algorithm": ES}, MembersReader.read
    changes = {"training.generations": 5, "checkpoints.keep_last": 1}
    run = neuroevo.train(tables, changes, out=tmp_path / "run")
    assert run.elite(2)[1].genome.root.has_weights

    def changed(self, generation, behaviors=True):
        members = read(self, generation, behaviors)
        members.fitness[:] = members.fitness[::-1]
        return members

    monkeypatch.setattr(MembersReader, "read", changed)
    lost = pytest.raises(UserError, match=r"weights of generation 2's elite are no longer available")
    with lost:
        run.elite(2)  # its center would have another name
    monkeypatch.undo()
    without = neuroevo.train(tables, {**changes, "logging.members_megabytes": 0}, out=tmp_path / "without")
    with lost:
        without.elite(2)
