"""members.bin: every member of every generation, its parent, and what it did; within a budget, whatever is damaged."""

import io
import os
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import neuroevo
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome, grow
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.members import MembersReader
from neuroevo.runs.members_format import OF_ROOT, Record, pack, places, unpack
from neuroevo.runs.paths import LOG, MEMBERS
from tests.support.runs import checkpoint_after, config, interrupted_run, new_run, play, read_rows

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


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def algorithm(request):
    return request.param


def asked_by(path, monkeypatch, **changes):
    """A run in `path`, and the genomes that its algorithm asked for in each generation."""
    made = config(**changes)
    asked, ask = [], type(made.algorithm).ask

    def noted(self, state, *more):
        genomes = ask(self, state, *more)
        asked.append(genomes)
        return genomes

    monkeypatch.setattr(type(made.algorithm), "ask", noted)
    play(RunFolder.create(path, made))
    monkeypatch.undo()
    return asked


def test_every_member_is_known_with_its_parent_and_its_fitness(tmp_path, monkeypatch, algorithm):
    asked = asked_by(tmp_path, monkeypatch, algorithm=algorithm)
    reader, rows = MembersReader(tmp_path), read_rows(tmp_path)
    assert reader.generations == len(rows) == len(asked)
    for generation, genomes in enumerate(asked):
        members = reader.read(generation)
        assert [reader.genome(generation, i) for i in range(len(members))] == genomes
        np.testing.assert_array_equal(members.fitness, rows[generation]["fitness"])
        assert members.steps.sum() == rows[generation]["steps_population"]
        for i, genome in enumerate(genomes):
            number, which = members.parents[i]
            parent = genome.parent
            if number < 0:
                assert parent is None or not any(parent in earlier for earlier in asked[:generation])
            else:
                assert asked[number][which] == parent
            assert members.seeds[i] == (genome.mutations[-1][0] if genome.mutations else genome.root)
        bases = {genome.root.name for genome in genomes if isinstance(genome.root, Center)}
        assert set(members.centers) == bases


def test_an_elite_comes_from_members_back_to_generation_0(tmp_path):
    new_run(tmp_path, algorithm=GA, training={"generations": 6})
    reader, elite = MembersReader(tmp_path), neuroevo.open_run(tmp_path).elite()[1].genome
    where = reader.find(elite)
    line = reader.lineage(*where)
    assert len(line) == len(elite.mutations) + 1
    assert [reader.genome(*each) for each in line] == [
        grow(Genome(elite.root), elite.mutations[:count]) for count in range(len(elite.mutations), -1, -1)
    ]
    assert all(younger[0] > older[0] for younger, older in pairwise(line))
    assert reader.find(elite.child(1, 0.5)) is None


def test_parents_that_had_no_offspring_for_a_while_are_found(tmp_path):
    few = {**GA, "population": 4, "parents": 3}  # the elite is no parent of everybody
    new_run(tmp_path, algorithm=few, training={"generations": 12, "seed": 5})
    reader = MembersReader(tmp_path)
    before = [tuple(each) for g in range(1, 12) for each in reader.read(g).parents if 0 <= each[0] < g - 1]
    assert before and all((reader.read(number).parents[which] >= -1).all() for number, which in before)


def test_a_run_that_starts_from_another_says_whose_offspring_its_members_are(tmp_path):
    new_run(tmp_path / "first", algorithm=GA)
    new_run(tmp_path / "second", algorithm=GA, training={"start_from": str(tmp_path / "first"), "generations": 2})
    first, second = MembersReader(tmp_path / "first"), MembersReader(tmp_path / "second")
    members = second.read(0)
    assert (members.parents == -1).all()
    for i in range(len(members)):
        assert first.find(second.genome(0, i).parent) is not None


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


def test_a_run_that_was_interrupted_has_the_same_file(tmp_path):
    new_run(tmp_path / "whole", algorithm=GA)
    path = interrupted_run(tmp_path / "parts", 3, algorithm=GA)
    checkpoint_after(path, 3).unlink()  # so that a generation that is kept is played again
    assert MembersReader(path).generations == 3
    play(RunFolder.resume(path))
    assert (path / MEMBERS).read_bytes() == (tmp_path / "whole" / MEMBERS).read_bytes()


def test_a_fork_begins_with_the_members_of_the_other(tmp_path):
    new_run(tmp_path / "first", algorithm=GA)
    play(RunFolder.fork(tmp_path / "fork", tmp_path / "first", ["training.generations=7"], generation=4))
    first, fork = MembersReader(tmp_path / "first"), MembersReader(tmp_path / "fork")
    assert fork.generations == 7
    for generation in range(4):
        np.testing.assert_array_equal(fork.read(generation).seeds, first.read(generation).seeds)
    assert fork.lineage(6, 0)[-1][0] == 0


def test_the_budget_is_kept_to(tmp_path):
    def run(megabytes):
        path = tmp_path / f"{megabytes}"
        neuroevo.train(MAZE, {"training.generations": 8, "logging.members_megabytes": megabytes}, out=path)
        return path

    assert not (run(0) / MEMBERS).exists()
    reader = MembersReader(tmp_path / "0")
    assert reader.generations == 0
    with pytest.raises(UserError, match=r"generation 3 are not kept.*none are"):
        reader.read(3)


@pytest.mark.parametrize("bytes_", [1200, 2000])
def test_what_does_not_fit_is_left_out_behaviors_first(tmp_path, monkeypatch, bytes_):
    monkeypatch.setattr("neuroevo.runs.members_log._budget", lambda _: bytes_)
    neuroevo.train(MAZE, {"training.generations": 8}, out=tmp_path)
    reader = MembersReader(tmp_path)
    assert (tmp_path / MEMBERS).stat().st_size <= bytes_
    kept = [reader.read(g).behaviors is not None for g in range(8) if reader.kept(g)]
    assert kept[0] and kept == sorted(kept, reverse=True) and not all(kept)
    assert len(kept) < 8 and "is full" in (tmp_path / LOG).read_text()


def test_one_that_is_a_link_is_refused(tmp_path):
    path = interrupted_run(tmp_path / "b", 2, algorithm=GA)
    other = tmp_path / "other"
    os.replace(path / MEMBERS, other)
    (path / MEMBERS).symlink_to(other)
    with pytest.raises(UserError, match="symbolic link"):
        RunFolder.resume(path)


def test_lost_generations_leave_a_gap(tmp_path):
    path = interrupted_run(tmp_path, 3, algorithm=GA)
    (path / MEMBERS).write_bytes((path / MEMBERS).read_bytes()[:10])
    play(RunFolder.resume(path))
    reader = MembersReader(path)
    assert [reader.kept(generation) for generation in range(6)] == [False, False, False, True, True, False]
    run = neuroevo.open_run(path)
    assert run.population(4).genomes == [reader.genome(4, i) for i in range(12)]
    assert reader.lineage(4, 0)[-1][0] == 3
    with pytest.raises(UserError, match="generation 1 are not kept"):
        reader.read(1)


def test_a_reader_sees_what_is_added_and_what_is_taken_back(tmp_path):
    path = interrupted_run(tmp_path / "run", 3, algorithm=GA)
    reader = MembersReader(path)
    old = reader.read(2)
    checkpoint_after(path, 3).unlink()
    play(RunFolder.resume(path))
    reader.refresh()
    assert reader.generations == 5
    np.testing.assert_array_equal(reader.read(2).seeds, old.seeds)
    shutil.rmtree(path)
    reader.refresh()
    assert reader.generations == 0
    with pytest.raises(UserError, match=r"member 12 of generation 0 is out of range \[0, 12\)"):
        new_run(path, algorithm=GA)
        MembersReader(path).genome(0, 12)


NUMBERS = st.integers(0, 2**63 - 1)


@st.composite
def records(draw):
    """A record as a run may have it."""
    count, width = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    roots = draw(st.lists(st.builds(Genome, NUMBERS), min_size=1, max_size=3))
    parents = np.array(draw(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=count, max_size=count)))
    parents[draw(st.lists(st.integers(0, count - 1)))] = OF_ROOT, draw(st.integers(0, len(roots) - 1))
    floats = st.floats(allow_nan=False, allow_infinity=False, width=32)
    dtype = draw(st.sampled_from([np.uint8, np.float32, np.float64]))
    return Record(
        7,
        parents,
        np.array(draw(st.lists(NUMBERS, min_size=count, max_size=count))),
        np.array(draw(st.lists(floats, min_size=count, max_size=count)), np.float32),
        np.array(draw(st.lists(st.integers(0, 64), min_size=count, max_size=count)), np.uint8),
        np.array(draw(st.lists(floats, min_size=count, max_size=count)), np.float64),
        np.array(draw(st.lists(st.integers(0, 2**40), min_size=count, max_size=count))),
        tuple(roots),
        draw(arrays(dtype, (count, width))) if width else None,
        draw(st.none() | arrays(np.float64, count)),
    )


def read_all(content):
    """All records of a file with this content."""
    file = io.BytesIO(content)
    return [unpack(file, place) for place in places(file)]


@given(records())
def test_a_record_is_read_as_it_was_written(record):
    (found,) = read_all(pack(record))
    for name in ("parents", "seeds", "scales", "kinds", "fitness", "steps"):
        np.testing.assert_array_equal(getattr(found, name), getattr(record, name))
    assert (found.generation, found.roots) == (7, list(record.roots))
    for name in ("behaviors", "novelty"):
        there, here = getattr(record, name), getattr(found, name)
        assert (here is None) == (there is None)
        if there is not None:
            np.testing.assert_array_equal(here, there)
            assert here.dtype == there.dtype


@given(records(), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_record_is_refused_or_left_out(record, data):
    content = bytearray(pack(record))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    try:
        found = read_all(bytes(content[: data.draw(st.integers(0, len(content)))]))
    except ValueError:
        return
    assert found == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"parents": np.array([[7, 0]])}, "earlier generation"),
        ({"parents": np.array([[-4, 0]])}, "earlier generation"),
        ({"parents": np.array([[OF_ROOT, 1]])}, "not there"),
        ({"seeds": np.array([-1])}, "played"),
        ({"fitness": np.array([np.nan])}, "played"),
        ({"kinds": np.array([65])}, "played"),
        ({"steps": np.array([-1])}, "played"),
    ],
)
def test_a_forged_record_with_a_right_sum_is_refused(changes, why):
    right = {"parents": np.array([[6, 0]]), "seeds": np.array([1]), "scales": np.array([1.0]), "kinds": np.array([0])}
    right |= {"fitness": np.array([1.0]), "steps": np.array([1])}
    assert len(read_all(pack(Record(7, **right, roots=[Genome(3)])))) == 1
    with pytest.raises(ValueError, match=why):
        read_all(pack(Record(7, **{**right, **changes}, roots=[Genome(3)])))


def test_a_damaged_generation_is_named(tmp_path):
    new_run(tmp_path, algorithm=GA)
    content = bytearray((tmp_path / MEMBERS).read_bytes())
    with (tmp_path / MEMBERS).open("rb") as file:
        place = list(places(file))[2]
    content[place.end - 1] ^= 1
    (tmp_path / MEMBERS).write_bytes(content)
    reader = MembersReader(tmp_path)
    with pytest.raises(UserError, match=f"{MEMBERS} is damaged in the record of generation 2: its checksum"):
        reader.read(2)
    assert len(reader.read(3)) == 12


def test_members_are_kept_after_a_generation_that_a_power_cut_has_damaged(tmp_path):
    """Whose members' offspring come from genomes that are written whole."""
    new_run(tmp_path / "whole", algorithm=GA)
    path = interrupted_run(tmp_path / "cut", 4, algorithm=GA)
    content = bytearray((path / MEMBERS).read_bytes())
    content[-1] ^= 1
    (path / MEMBERS).write_bytes(content)
    play(RunFolder.resume(path))
    whole, reader = MembersReader(tmp_path / "whole"), MembersReader(path)
    with pytest.raises(UserError, match="damaged in the record of generation 3"):
        reader.read(3)
    for generation in (0, 1, 2, 4):
        assert [reader.genome(generation, i) for i in range(12)] == [whole.genome(generation, i) for i in range(12)]
    assert (reader.read(4).parents == -1).any()
    assert "members are not kept" not in (path / LOG).read_text()


ES_RUNS = {
    "es": ES,
    "low_rank_es": LOW_RANK,
    "sgd": {**ES, "optimizer": {"type": "sgd", "learning_rate": 0.1, "momentum": 0.9}},
}


@pytest.mark.parametrize("algorithm", ES_RUNS.values(), ids=ES_RUNS)
def test_centers_without_a_checkpoint_are_told_anew(tmp_path, monkeypatch, algorithm):
    made = neuroevo.make_config(
        {**MAZE, "algorithm": algorithm}, {"training.generations": 6, "checkpoints.keep_last": 1}
    )
    asked, ask = [], type(made.algorithm).ask

    def noted(self, state, *more):
        asked.append(ask(self, state, *more))
        return asked[-1]

    monkeypatch.setattr(type(made.algorithm), "ask", noted)
    run = neuroevo.train(made, out=tmp_path)
    monkeypatch.undo()
    assert 6 in run.checkpoints() and 1 not in run.checkpoints()
    for generation in (1, 3):
        genomes = run.population(generation).genomes
        assert genomes == asked[generation]
        if generation == 3 and isinstance(genomes[0].root, Center):
            np.testing.assert_array_equal(genomes[0].root.vector, asked[generation][0].root.vector)
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


def test_centers_cannot_be_told_anew_without_the_members(tmp_path):
    tables = {**MAZE, "algorithm": ES}
    changes = {"training.generations": 5, "checkpoints.keep_last": 1}
    run = neuroevo.train(tables, changes, out=tmp_path / "changed")
    content = (run.path / MEMBERS).read_bytes()
    with (run.path / MEMBERS).open("rb") as file:
        records_ = [unpack(file, place) for place in places(file)]
    other = [*records_[:1], replace(records_[1], fitness=records_[1].fitness[::-1]), *records_[2:]]
    (run.path / MEMBERS).write_bytes(b"".join(map(pack, other)))
    with pytest.raises(UserError, match=r"weights of generation 2's elite are not known"):
        run.elite(2)  # since it would have another name
    (run.path / MEMBERS).unlink()
    with pytest.raises(UserError, match=r"weights of generation 2's elite are not known"):
        run.elite(2)
    (run.path / MEMBERS).write_bytes(content)
    assert run.elite(2)[1].genome.root.has_weights
