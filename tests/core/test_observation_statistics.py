"""Observations normalized by statistics of earlier populations: the statistics, runs that use them, and failures.

A toy evaluator with known observations plays the episodes; see test_continuous_training for real environments.
"""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroevo.algorithms.ga import GA
from neuroevo.config.schema import Training
from neuroevo.core.episode import Batch, EpisodeResults, Outcomes
from neuroevo.core.errors import SimulationError, UserError
from neuroevo.core.observation_statistics import Normalizer, ObservationStatistics
from neuroevo.core.problems import ConfigError
from neuroevo.runs.reader import Elite, RunReader
from neuroevo.runs.values import checksum
from neuroevo.sessions.folder import RunFolder
from neuroevo.training.loop import train
from neuroevo.training.state import start
from tests.support.databases import change, query
from tests.support.runs import config, new_run, play, read_rows, results, timeless
from tests.support.stored import stored_state
from tests.support.toy import PHASES, ToyEvaluator, call_of, observations, sums_of

ALGORITHM = GA(population=8, parents=3, sigma=0.2, validation_candidates=3)
TRAINING = Training(seed=4, generations=5, validation_episodes=5, test_episodes=7)
CHANGES = {"env": {"name": "Hopper-v5"}, "network": {"name": "mlp", "normalize_observations": True}}


def results_of(ids, failures, rows):
    """Return results of finished episodes; failures are given by id."""
    count, reasons = len(ids), [failures.get(index, "") for index in ids]
    return EpisodeResults(
        np.array(ids, np.int64), np.zeros(count), np.ones(count, np.int64), reasons, rows, np.zeros((count, 0))
    )


def summed_rows(rows, failures=None, order=None):
    """The sum of episodes' sums, float64 [N, 1 + 2n], that end in an order, by default their own: [1 + 2n]."""
    batch = Batch(len(rows))
    for index in range(len(rows)) if order is None else order:
        batch.book(results_of([index], failures or {}, np.array([rows[index]], np.float64)))
    return batch.outcomes.observation_sums


episodes_of_two = st.lists(
    st.lists(st.tuples(*[st.floats(-1e3, 1e3)] * 2), min_size=1, max_size=6), min_size=1, max_size=8
)


@given(episodes_of_two, st.integers(0, 8))
def test_mean_and_deviation_are_those_of_all_observations(episodes, split):
    seen = ObservationStatistics()
    for part in (episodes[:split], episodes[split:]):
        if part:
            seen = seen.after(summed_rows([sums_of(np.array(episode)) for episode in part]))
    everything = np.concatenate([np.array(episode) for episode in episodes])
    normalizer = seen.normalizer(3, 2)
    assert (seen.count, normalizer.number) == (len(everything), 3)
    np.testing.assert_allclose(normalizer.mean, everything.mean(axis=0), rtol=1e-9, atol=1e-9)
    expected = np.sqrt(np.maximum(everything.var(axis=0), 1e-2))
    np.testing.assert_allclose(normalizer.std, expected, rtol=1e-6)


def test_sums_are_taken_in_the_order_of_the_episodes():
    rows = np.random.default_rng(0).standard_normal((50, 5)) * 10.0 ** np.arange(-20, 30)[:, None]
    seen = ObservationStatistics().after(summed_rows(rows[:20])).after(summed_rows(rows[20:]))
    totals = np.zeros((2, 5))
    for population, part in enumerate((rows[:20], rows[20:])):
        for row in part:
            totals[population] += row
    assert np.array_equal(np.concatenate([seen.sums, seen.squares]), totals.sum(axis=0)[1:])
    assert not np.array_equal(rows[::-1].sum(axis=0), totals.sum(axis=0))  # the order matters


@given(st.integers(0, 10_000))
def test_sums_do_not_depend_on_when_episodes_end_and_are_told_of(seed):
    """Some episodes have no normalizer."""
    rng = np.random.default_rng(seed)
    order, without = rng.permutation(12).tolist(), set(np.flatnonzero(rng.random(12) < rng.random()).tolist())
    rows = np.random.default_rng(1).standard_normal((12, 5)) * 10.0 ** np.arange(-4, 8)[:, None]
    failures, batch, booked = {3: "NaN", 7: "inf"}, Batch(12), []
    expected = None if without >= set(range(12)) else np.zeros(5)
    for index in sorted(set(range(12)) - without - set(failures)):
        expected = expected + rows[index]
    while len(booked) < 12:
        over = order[len(booked) : len(booked) + rng.integers(4)]
        sums = rows[over] if set(over) - without else np.zeros((len(over), 0))
        sums[[index in without for index in over if sums.size]] = 0
        batch.book(results_of(over, failures, sums))
        booked += over
        first = min(set(range(13)) - set(booked))
        assert set(batch._waiting) == {index for index in booked if index >= first} - without
        assert all(waiting.base is None for waiting in batch._waiting.values())  # copies, not views of larger arrays
    assert batch._waiting == {} and batch.left == 0 and batch.outcomes.failures == failures
    assert np.array_equal(batch.outcomes.observation_sums, expected)


def test_what_a_network_sees():
    normalizer = Normalizer(0, np.array([1.0, -2.0, 0.0]), np.array([0.1, 3.0, 1.0]))
    seen = normalizer(np.array([[1.25, 1.0, 7.0], [0.9, -2.0, -5.5]]))
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, [[2.5, 1.0, 5.0], [-1.0, 0.0, -5.0]], rtol=1e-6)
    same = Normalizer(0, normalizer.mean.copy(), normalizer.std.copy())
    assert same == normalizer and hash(same) == hash(normalizer)
    assert Normalizer(1, same.mean, same.std) != same != Normalizer(0, same.mean, 2 * same.std)


def test_before_anything_was_seen():
    normalizer = ObservationStatistics().normalizer(0, 3)
    assert normalizer == Normalizer(0, np.zeros(3), np.ones(3))


def test_moments_that_do_not_count():
    good, other = [2.0, 1.0, 2.0, 0.5, 4.0], [3.0, 9.0, 9.0, 27.0, 27.0]
    seen = ObservationStatistics().after(
        summed_rows([other, good, [1.0, np.inf, 0.0, np.inf, 0.0]], {0: "it exploded"})
    )
    assert seen == ObservationStatistics(2, np.array([1.0, 2.0]), np.array([0.5, 4.0]))
    largest = [1.0, 0.0, 0.0, 1e308, 0.0]
    once = ObservationStatistics(1, np.zeros(2), np.array([1e308, 0.0]))
    assert (
        ObservationStatistics().after(summed_rows([largest, largest]))
        == ObservationStatistics().after(summed_rows([largest]))
        == once
    )
    assert once.after(summed_rows([largest])) == once
    with pytest.raises(UserError, match="2 numbers, .* 3"):
        seen.normalizer(0, 3)
    with pytest.raises(ValueError, match="no observation sums"):
        ObservationStatistics().after(Outcomes(np.zeros(2), np.ones(2, np.int64)).observation_sums)


def normalizing_start():
    """Return a state before generation 0 with observation statistics."""
    return start(ALGORITHM, TRAINING, observation_statistics=ObservationStatistics())


@pytest.mark.parametrize("late", [0, 1, 100])
def test_a_generation_plays_with_what_the_populations_before_it_saw(late):
    toy = ToyEvaluator(late=late)
    pairs = list(train(ALGORITHM, toy, TRAINING, normalizing_start()))
    records = [record for _, records in pairs for record in records]
    sizes = {"p": 8, "v": 15, "t": 7}
    by_phase = {name: [call for call in toy.calls if len(call) == size] for name, size in sizes.items()}
    assert [len(calls) for calls in by_phase.values()] == [5, 5, 5]
    for generation, record in enumerate(records):
        assert record.normalizer.number == generation
        before = [observations(episode) for call in by_phase["p"][:generation] for episode in call]
        everything = np.concatenate(before) if before else np.array([[-1.0], [1.0]]) * np.ones(2)
        np.testing.assert_allclose(record.normalizer.mean, everything.mean(axis=0), rtol=1e-12)
        deviation = np.sqrt(np.maximum(everything.var(axis=0), 1e-2))
        np.testing.assert_allclose(record.normalizer.std, deviation, rtol=1e-9)
        for calls in by_phase.values():  # including tests, which may be played late
            assert {episode.normalizer for episode in calls[generation]} == {record.normalizer}
    assert records[1].normalizer.std[0] > 0.2 and records[1].normalizer.std[1] > 20  # neither is clipped to the minimum
    expected = train(ALGORITHM, ToyEvaluator(), TRAINING, normalizing_start())
    assert [timeless(r.row()) for r in records] == [timeless(r.row()) for _, rs in expected for r in rs]


def test_without_it_nobody_has_a_normalizer():
    toy = ToyEvaluator()
    [*_, (state, [record])] = train(ALGORITHM, toy, TRAINING)
    assert state.observation_statistics is None and record.normalizer is None
    assert {episode.normalizer for call in toy.calls for episode in call} == {None}


def test_a_state_is_stored_exactly():
    for state, _ in train(
        ALGORITHM,
        ToyEvaluator(late=100),
        TRAINING,
        normalizing_start(),
    ):
        stored = stored_state(state, ALGORITHM.state_type)
        assert stored.observation_statistics == state.observation_statistics and isinstance(
            stored.observation_statistics.count, int
        )
        assert stored.observation_statistics.sums.dtype == np.float64
        normalizers = [each.record.normalizer for each in state.pending]
        assert [each.record.normalizer for each in stored.pending] == normalizers


@pytest.mark.parametrize(("late", "first"), [(0, 0), (4, 1), (100, 2)])
def test_a_run_goes_on_from_any_interruption(tmp_path, late, first):
    """Each call is interrupted with one of the three kinds of lateness, and so is each phase of a generation."""
    play(RunFolder.create(tmp_path / "whole", config(**CHANGES)))
    whole = results(tmp_path / "whole")
    assert sum(len(data) for *_, data in whole["states"][5]["arrays"]) > 30  # they are compared
    assert len({json.dumps(row["fitness"]) for row in whole["rows"]}) == 5
    for call in range(first, 15, 4):
        path = tmp_path / f"run{call}"
        with pytest.raises(KeyboardInterrupt):
            play(RunFolder.create(path, config(**CHANGES)), ToyEvaluator(late=late, interrupt_at=call))
        play(RunFolder.resume(path))
        assert results(path) == whole


def test_each_elite_is_kept_with_its_normalizer(tmp_path):
    toy = ToyEvaluator()
    new_run(tmp_path / "run", toy, **CHANGES)
    of_tests = [call[0] for call in toy.calls if len(call) == 2]
    reader = RunReader(tmp_path / "run")
    assert [reader.elite(number)[1] for number in range(5)] == [Elite(e.genome, e.normalizer) for e in of_tests]
    rows = query(tmp_path / "run", "SELECT normalizer_mean, normalizer_std FROM generations ORDER BY generation")
    assert rows == [(e.normalizer.mean.tobytes(), e.normalizer.std.tobytes()) for e in of_tests]
    new_run(tmp_path / "plain")
    assert query(tmp_path / "plain", "SELECT DISTINCT normalizer_mean FROM generations") == [(None,)]
    assert RunReader(tmp_path / "plain").elite()[1].normalizer is None


TWO = np.ones(2).tobytes()


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        (b"1234567", TWO),
        (np.ones(1).tobytes(), TWO),
        (np.array([np.nan, 0]).tobytes(), TWO),
        (TWO, np.array([1.0, 0]).tobytes()),
        (TWO, None),
    ],
)
@pytest.mark.parametrize("sealed", [True, False])
def test_a_damaged_normalizer(tmp_path, mean, std, sealed):
    """The row has a checksum that is either updated or outdated."""
    path = tmp_path / "run"
    new_run(path, **CHANGES)
    change(path, "UPDATE generations SET normalizer_mean = ?, normalizer_std = ? WHERE generation = 2", mean, std)
    if sealed:
        ((*row, _),) = query(path, "SELECT * FROM generations WHERE generation = 2")
        change(path, "UPDATE generations SET checksum = ? WHERE generation = 2", checksum(*row))
    assert RunReader(path).elite(1)
    with pytest.raises(UserError, match="run.db is damaged: .*generation 2 "):
        RunReader(path).elite(2)


def test_starting_from_another_run_goes_on_with_its_statistics(tmp_path):
    new_run(tmp_path / "first", **CHANGES)
    toy, first = ToyEvaluator(), RunReader(tmp_path / "first")
    changes = {**CHANGES, "training": {"start_from": str(tmp_path / "first"), "generations": 1}}
    new_run(tmp_path / "second", toy, **changes)
    expected = first.state().observation_statistics.normalizer(0, 2)
    assert {episode.normalizer for call in toy.calls for episode in call} == {expected}
    assert toy.played(0, "validation")[0].genome == first.elite()[1].genome
    assert (
        RunReader(tmp_path / "second").state().observation_statistics.count
        == first.state().observation_statistics.count + 8 * 20
    )


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ({"name": "mlp"}, "normalize_observations is true, this run's is false"),
        ({**CHANGES["network"], "hidden": [7, 9]}, "hidden is [256, 256], this run's is [7, 9]"),
        ({**CHANGES["network"], "action_bins": 5}, "action_bins is 0, this run's is 5"),
    ],
)
def test_starting_from_a_run_of_another_network(tmp_path, network, expected):
    new_run(tmp_path / "first", **{**CHANGES, "training": {"generations": 1}})
    changes = {**CHANGES, "network": network, "training": {"start_from": str(tmp_path / "first")}}
    with pytest.raises(ConfigError) as raised:
        RunFolder.create(tmp_path / "second", config(**changes))
    (problem,) = raised.value.problems
    assert (problem.key, problem.value) == ("training.start_from", str(tmp_path / "first"))
    assert expected in problem.reason


# Failures


def some_fail(*seeds_of):
    """Return a toy evaluator in which episodes fail if seed % 3 is in `seeds_of`."""
    return ToyEvaluator(failed=lambda episode: f"NaN in {episode.seed}" if episode.seed % 3 in seeds_of else "")


def test_what_a_failed_episode_counts_as():
    returns = np.array([5.0, -2.0, 7.0, 100.0, -30.0])
    outcomes = Outcomes(returns, np.ones(5, np.int64), {3: "a", 4: "b"})
    assert outcomes.counted.tolist() == [5.0, -2.0, 7.0, -2.0, -2.0]
    assert returns.tolist() == [5.0, -2.0, 7.0, 100.0, -30.0]
    assert Outcomes(returns, np.ones(5, np.int64)).counted.tolist() == returns.tolist()
    with pytest.raises(SimulationError, match="^all 2 .*: it exploded$"):
        _ = Outcomes(np.zeros(2), np.ones(2, np.int64), {1: "so did this", 0: "it exploded"}).counted


def test_failed_episodes_are_the_worst_of_their_phase_and_are_told_of():
    toy = some_fail(0)
    pairs = list(train(ALGORITHM, toy, TRAINING, normalizing_start()))
    records = [record for _, records in pairs for record in records]

    def returns(episodes):
        """Return effective returns, float64 [episodes], by a direct implementation of the rule."""
        good = [toy.play(episode) for episode in episodes if episode.seed % 3]
        return np.array([toy.play(episode) if episode.seed % 3 else min(good) for episode in episodes])

    for generation, record in enumerate(records):
        population, validation, test = (toy.played(generation, phase) for phase in PHASES)
        assert record.fitness.tolist() == returns(population).tolist()
        means = returns(validation).reshape(3, 5).mean(axis=1)
        assert record.validation_mean == means.max()
        assert record.elite == validation[5 * int(means.argmax())].genome
        assert record.test.mean == pytest.approx(returns(test).mean(), rel=1e-12)
        row = record.row()
        for phase, episodes in (("population", population), ("validation", validation), ("test", test)):
            assert row[f"failures_{phase}"] == sum(episode.seed % 3 == 0 for episode in episodes)
        first = next(e for call in (population, validation, test) for e in call if e.seed % 3 == 0)
        assert record.first_failure == f"NaN in {first.seed}"
    assert sum(record.population.failures for record in records) > 5
    seen = [observations(episode) for call in toy.calls[::3] for episode in call if episode.seed % 3]
    assert pairs[-1][0].observation_statistics.count == 20 * len(seen)


@pytest.mark.parametrize("late", [0, 100])
def test_failures_of_tests_survive_an_interruption(tmp_path, late):
    changes = {"training": {"validation_episodes": 6, "test_episodes": 8}}
    new_run(tmp_path / "whole", some_fail(0), **changes)
    with pytest.raises(KeyboardInterrupt):
        toy = some_fail(0)
        toy._interrupt_at, toy._late = call_of(3, "validation"), late
        new_run(tmp_path / "run", toy, **changes)
    play(RunFolder.resume(tmp_path / "run"), some_fail(0))
    assert results(tmp_path / "run") == results(tmp_path / "whole")
    assert sum(row["failures_test"] for row in read_rows(tmp_path / "run")) > 2


def test_the_log_says_how_many_failed_and_why_the_first_did(tmp_path):
    toy = some_fail(0)
    new_run(tmp_path / "run", toy, training={"validation_episodes": 6})
    rows = read_rows(tmp_path / "run")
    log = (tmp_path / "run" / "log.txt").read_text()
    for generation, row in enumerate(rows):
        failed = sum(row[f"failures_{phase}"] for phase in ("population", "validation", "test"))
        [line] = [line for line in log.splitlines() if f"generation {generation}: " in line]
        first = next(e.seed for call in toy.calls[call_of(generation, "population") :] for e in call if e.seed % 3 == 0)
        assert line.endswith(f", {failed} episode{'s' if failed > 1 else ''} failed, the first: NaN in {first}")


def test_a_test_of_which_all_failed_has_no_mean():
    toy = ToyEvaluator(failed=lambda episode: "" if episode.max_steps else "NaN")
    records = [record for _, records in train(ALGORITHM, toy, TRAINING) for record in records]
    assert len(records) == 5
    assert all((each.test.mean, each.test.standard_error, each.test.failures) == (None, None, 7) for each in records)


@pytest.mark.parametrize(("phase", "size"), [("population", 8), ("validation", 15)])
def test_a_population_of_which_all_failed_ends_the_run(tmp_path, phase, size):
    toy = ToyEvaluator()
    toy._failed = lambda episode: "qacc[3] is inf" if len(toy.calls) == call_of(1, phase) else ""
    with pytest.raises(SimulationError, match=rf"^{phase} of generation 1: all {size} .*: qacc\[3\] is inf$"):
        new_run(tmp_path / "run", toy, training={"validation_episodes": 5})
    folder = RunFolder.resume(tmp_path / "run")  # nothing is lost
    assert folder.state.generation == 1
