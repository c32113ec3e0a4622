"""The generation loop with a toy evaluator: episodes, budgets, cut-offs, records, and continuing from a state."""

import re
from dataclasses import replace

import numpy as np
import pytest

from neuroevo.algorithms.base import Algorithm, State
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.random_search import RandomSearch
from neuroevo.config.schema import Training
from neuroevo.core.behavior import Behavior
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.training.callback import Callback
from neuroevo.training.loop import train
from neuroevo.training.record import COLUMNS, EvaluationRecord, PhaseRecord
from neuroevo.training.state import spent, start
from tests.support import runs
from tests.support.toy import PHASES, ToyEvaluator, call_of, theta

GA_SMALL = GA(population=8, parents=3, sigma=0.2, validation_candidates=3)


def settings(**changes):
    return Training(**{"seed": 4, "generations": 3, "validation_episodes": 5, "test_episodes": 6, **changes})


def timeless(record):
    return runs.timeless(record.row())


def records_of(training):
    """Return all records that a call of train() yields."""
    return [record for _, records in training for record in records]


def test_episodes_of_each_phase():
    toy = ToyEvaluator()
    records = records_of(train(GA_SMALL, toy, settings(max_episode_steps=20)))
    assert [len(call) for call in toy.calls] == [8, 15, 6] * 3
    for generation in range(3):
        population, validation, test = (toy.played(generation, phase) for phase in PHASES)
        assert len({episode.genome for episode in population}) == 8
        assert [episode.seed for episode in population] == draw_seeds(8, 4, generation, Purpose.POPULATION_EPISODES)
        shared = draw_seeds(5, 4, generation, Purpose.VALIDATION_EPISODES)
        assert [episode.seed for episode in validation] == shared * 3
        assert [episode.genome for episode in validation[::5]] == [e.genome for e in validation[4::5]]
        assert [episode.seed for episode in test] == draw_seeds(6, 4, generation, Purpose.TEST_EPISODES)
        assert {episode.genome for episode in test} == {records[generation].elite}
        assert {episode.max_steps for episode in population + validation} == {20}
        assert {episode.max_steps for episode in test} == {0}
    assert toy.played(1, "validation")[0].genome == records[0].elite  # the previous elite is a candidate again


def test_no_metric_may_have_the_name_of_a_column():
    """For each column of a row, including the list of all fitness."""

    class Own(GA):
        def metrics(self, before, after):
            return {"sigma": 0.1, name: 1.0}

    algorithm, training = Own(population=8, parents=3, sigma=0.2, validation_candidates=3), settings(generations=1)
    (record,) = records_of(train(GA_SMALL, ToyEvaluator(), training))
    columns = record.row().keys() - {"sigma"}
    assert columns == set(COLUMNS)
    assert {"generation", "max_episode_steps", "frames_total", "fitness", "idle_share"} < columns
    for name in sorted(columns):
        with pytest.raises(UserError, match=rf"^metrics\(\) of Own .*'{name}'.* column"):
            list(train(algorithm, ToyEvaluator(), training))
    name = "frames"
    (record,) = records_of(train(algorithm, ToyEvaluator(), training))
    assert (record.row()["sigma"], record.row()["frames"]) == (0.1, 1.0)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), np.float32("-inf"), "3", [1.0], 1j])
def test_metrics_are_finite_numbers(number):
    class Own(GA):
        def metrics(self, before, after):
            return {"seen": np.int64(4), "own": number if before.generation == 2 else None}

    algorithm = Own(population=8, parents=3, sigma=0.2, validation_candidates=3)
    generations = train(algorithm, ToyEvaluator(), settings(generations=3))
    extra = [record.extra_metrics for _, records in (next(generations), next(generations)) for record in records]
    assert extra == [{"seen": 4, "own": None}] * 2
    with pytest.raises(UserError, match=rf"^metrics\(\) of Own .*own = {re.escape(repr(number))}, "):
        next(generations)


def test_the_numbers_of_a_record():
    toy = ToyEvaluator()
    (_, [first]), (after, [second]) = list(train(GA_SMALL, toy, settings(generations=2, max_episode_steps=20)))
    row = second.row()
    population, validation, test = (toy.played(1, phase) for phase in PHASES)
    fitness = np.array([toy.play(episode) for episode in population])
    np.testing.assert_array_equal(second.fitness, fitness)
    assert row["fitness"] == fitness.tolist()
    assert row["fitness_mean"] == pytest.approx(sum(fitness) / 8, rel=1e-12)
    assert row["fitness_median"] == pytest.approx(sum(sorted(fitness)[3:5]) / 2, rel=1e-12)
    assert (row["fitness_max"], row["fitness_min"]) == (max(fitness), min(fitness))
    variance = sum((f - sum(fitness) / 8) ** 2 for f in fitness) / 8
    assert row["fitness_std"] == pytest.approx(variance**0.5, rel=1e-9)
    candidates = [validation[start : start + 5] for start in range(0, 15, 5)]
    means = [np.mean([toy.play(episode) for episode in each]) for each in candidates]
    assert row["validation_mean"] == max(means)
    assert second.elite == candidates[int(np.argmax(means))][0].genome
    tests = [toy.play(episode) for episode in test]
    assert row["test_mean"] == pytest.approx(sum(tests) / 6, rel=1e-12)
    error = (sum((t - sum(tests) / 6) ** 2 for t in tests) / 5) ** 0.5 / 6**0.5
    assert row["test_standard_error"] == pytest.approx(error, rel=1e-9)
    steps = [sum(min(10 + e.seed % 20, e.max_steps or 100) for e in call) for call in toy.calls]
    of_first, of_second = steps[:3], steps[3:]
    assert [row[f"steps_{phase}"] for phase in PHASES] == of_second
    assert [phase.steps for phase in second.phases] == of_second
    assert [phase.episodes for phase in second.phases] == [8, 15, 6]
    assert row["steps_total"] == sum(of_first[:2]) + sum(of_second[:2]) == after.steps  # tests do not count
    assert row["frames_total"] == 4 * after.steps
    assert first.row()["steps_total"] == sum(of_first[:2])
    assert (row["generation"], row["max_episode_steps"], row["sigma"]) == (1, 20, 0.2)
    assert (first.elite, second.elite) == tuple(toy.played(i, "test")[0].genome for i in range(2))


def test_fitness_is_the_mean_of_a_genomes_episodes():
    toy = ToyEvaluator()
    [(_, [record])] = train(GA_SMALL, toy, settings(generations=1, episodes=3))
    played = toy.played(0, "population")
    assert len(played) == len({episode.seed for episode in played}) == 24
    for genome in range(8):
        own = played[3 * genome : 3 * genome + 3]
        assert len({episode.genome for episode in own}) == 1
        assert record.fitness[genome] == pytest.approx(sum(toy.play(e) for e in own) / 3, rel=1e-12)


def test_no_test_episodes():
    toy = ToyEvaluator()
    [(_, [record])] = train(GA_SMALL, toy, settings(generations=1, test_episodes=0))
    assert len(toy.calls) == 2
    assert record.test == EvaluationRecord(episodes=0, steps=0, seconds=0.0, mean=None, standard_error=None)


def test_adaptive_max_episode_steps():
    # Toy episodes take 10 to 29 steps: with 12 nearly all reach the cut-off, with 28 few do.
    toy = ToyEvaluator()
    records = records_of(train(GA_SMALL, toy, settings(generations=5, max_episode_steps="adaptive:12,0.5,1.5,28")))
    limits = [record.max_episode_steps for record in records]
    assert limits[:2] == [12, 18]
    assert limits == sorted(limits)
    for generation, limit in enumerate(limits[:-1]):
        population = toy.played(generation, "population")
        reached = sum(10 + episode.seed % 20 >= limit for episode in population) >= 4
        assert limits[generation + 1] == (min(round(limit * 1.5), 28) if reached else limit)


def test_budgets_end_a_run_after_the_generation_that_spends_them():
    states = [state for state, _ in train(GA_SMALL, ToyEvaluator(), settings(generations=None, total_steps=1000))]
    assert states[-1].steps >= 1000 > states[-2].steps
    assert spent(states[-1], settings(generations=None, total_steps=1000)).startswith("after 1,")
    assert spent(states[-2], settings(generations=None, total_steps=1000)) is None
    assert len(list(train(GA_SMALL, ToyEvaluator(), settings(generations=2, total_steps=10**9)))) == 2
    assert len(list(train(GA_SMALL, ToyEvaluator(), settings(generations=None, minutes=1e-9)))) == 1
    assert spent(start(GA_SMALL, settings()), settings()) is None


class FakeClock:
    """Clock that advances only slightly unless a test advances it."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr("neuroevo.training.loop.time.perf_counter", self.read)

    def read(self):
        self.now += 2**-20
        return self.now

    def generations(self, training, seconds, state=None, callback=None):
        """Train, with a caller that spends some seconds after each yield; return the states."""
        states = []
        for each, _ in train(GA_SMALL, ToyEvaluator(late=2), training, state, callback):
            states.append(each)
            self.now += seconds
        return states


def test_minutes_are_those_of_the_whole_run(monkeypatch):
    """The time of checkpoints, callbacks and test episodes counts, in each session."""
    clock = FakeClock(monkeypatch)

    class Slow(Callback):
        def phase(self, generation, name, episodes):
            clock.now += 20

    minutes = settings(generations=20, minutes=4)
    by_caller = clock.generations(minutes, 60)
    assert [round(state.seconds) for state in by_caller if state.generation == 5][0] == 240
    assert by_caller[-1].generation == 5
    assert by_caller[-1].seconds > 240  # waiting for the last elites' test episodes
    assert not by_caller[-1].pending
    by_callback = clock.generations(minutes, 0, callback=Slow())
    assert by_callback[-1].generation == 6  # two phases take 40 s
    half = clock.generations(settings(generations=3), 60)[2]
    assert half.generation == 3
    clock.now += 10_000  # between the sessions
    rest = clock.generations(minutes, 60, half)
    assert [round(state.seconds) for state in rest][:3] == [120, 180, 240]
    assert rest[-1].generation == 6


def test_records_say_when_in_the_run_their_generation_ended(monkeypatch):
    clock = FakeClock(monkeypatch)
    totals = []
    for _, records in train(GA_SMALL, ToyEvaluator(), settings(generations=3)):
        totals += [round(record.seconds_total) for record in records]
        clock.now += 7
    assert totals == [0, 7, 14]


def test_going_on_from_a_state_equals_not_stopping():
    whole = list(train(GA_SMALL, ToyEvaluator(), settings(generations=5, max_episode_steps="adaptive:12,0.5,1.5,28")))
    for stop in range(1, 5):
        rest = list(
            train(
                GA_SMALL,
                ToyEvaluator(),
                settings(generations=5, max_episode_steps="adaptive:12,0.5,1.5,28"),
                whole[stop - 1][0],
            )
        )
        assert list(map(timeless, records_of(rest))) == list(map(timeless, records_of(whole[stop:])))


def test_nan_names_the_genome():
    with pytest.raises(ValueError, match="genome 2 is nan"):
        list(train(GA_SMALL, ToyEvaluator(nan_at=call_of(1, "population")), settings()))


def test_an_algorithm_without_validation():
    class Still(Algorithm):
        """Algorithm that returns the same genomes, of which the first is the elite; otherwise the base class."""

        def init(self, seed, genomes=()):
            return State(seed)

        def ask(self, state, weights):
            return [Genome(state.seed), Genome(state.seed + 1)]

        def tell(self, state, population, weights):
            assert population.behaviors is None  # though the evaluator records them
            return replace(state, generation=state.generation + 1)

        def elite(self, state):
            return Genome(state.seed)

    [(_, [record])] = train(Still(), ToyEvaluator(), settings(generations=1))
    assert record.validation_mean is None
    assert record.validation == PhaseRecord(episodes=0, steps=0, seconds=0.0)
    assert record.test.mean is not None


def test_a_callback_hears_of_each_phase():
    heard = []

    class Ears(Callback):
        def phase(self, generation, name, episodes):
            heard.append((generation, name, episodes))

        def progress(self, finished, steps):
            heard.append(finished)

    list(train(GA_SMALL, ToyEvaluator(late=1), settings(generations=1), callback=Ears()))
    assert heard == [(0, "population", 8), 8, (0, "validation", 15), 15, (0, "test", 6), 6]


def test_starting_from_other_genomes():
    others = [Genome(70 + i).child(i, 0.5) for i in range(4)]
    toy = ToyEvaluator()
    state = start(GA_SMALL, settings(), others)
    list(train(GA_SMALL, toy, settings(generations=1), state))
    assert {episode.genome.parent for episode in toy.played(0, "population")} <= set(others[:3])
    assert toy.played(0, "validation")[0].genome == others[0]  # a candidate as the previous elite
    search = RandomSearch(population=5, validation_candidates=2)
    toy = ToyEvaluator()
    list(train(search, toy, settings(generations=1), start(search, settings(), others)))
    assert toy.played(0, "validation")[0].genome == others[0]
    assert all(not episode.genome.mutations for episode in toy.played(0, "population"))


@pytest.mark.parametrize(
    "algorithm", [GA_SMALL, RandomSearch(population=5, validation_candidates=2)], ids=["ga", "random_search"]
)
def test_the_best_are_the_elite_and_what_else_is_kept(algorithm):
    state = list(train(algorithm, ToyEvaluator(), settings()))[-1][0].algorithm
    assert set(algorithm.best(state)) == {algorithm.elite(state), *getattr(state, "parents", ())}


def test_behaviors_of_episodes_that_failed_are_left_out_of_the_mean():
    """A genome with one failed episode of two, and a genome with two failed episodes."""
    told = []

    class Spy(RandomSearch):
        behavior = Behavior()

        def tell(self, state, population, weights=None):
            told.append(population)
            return super().tell(state, population, weights)

    genomes = Spy(population=4).ask(Spy(population=4).init(0))
    seeds = draw_seeds(8, 0, 0, Purpose.POPULATION_EPISODES)
    failing = {(genomes[1], seeds[2]), (genomes[2], seeds[4]), (genomes[2], seeds[5])}
    evaluator = ToyEvaluator(failed=lambda episode: "lost" if (episode.genome, episode.seed) in failing else "")
    list(train(Spy(population=4), evaluator, Training(generations=1, episodes=2, test_episodes=0)))
    expected = np.array([np.round(theta(genome)[:2], 1) for genome in genomes])
    expected[2] = np.nan
    np.testing.assert_allclose(told[0].behaviors, expected, rtol=1e-6)
