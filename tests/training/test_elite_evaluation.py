"""Test episodes played in parallel with later generations: same results, in order, and across interruptions."""

from dataclasses import replace

import numpy as np
import pytest

from neuroevo.algorithms.ga import GA
from neuroevo.config.schema import Training
from neuroevo.core.genome import Genome
from neuroevo.sessions.folder import RunFolder
from neuroevo.training.elite_evaluation import elite_evaluation_priority, episode_priority
from neuroevo.training.loop import train
from neuroevo.training.record import GenerationRecord, Record
from neuroevo.training.state import finished, spent
from tests.support.runs import config, play, results, timeless
from tests.support.stored import stored_state
from tests.support.toy import ToyEvaluator

ALGORITHM = GA(population=8, parents=3, sigma=0.2, validation_candidates=3)
TRAINING = Training(seed=4, generations=6, validation_episodes=5, test_episodes=7)


def rows(pairs):
    return [timeless(record.row()) for _, records in pairs for record in records]


def test_at_once_and_late_give_the_same_records():
    expected = rows(train(ALGORITHM, ToyEvaluator(), TRAINING))
    assert [row["generation"] for row in expected] == list(range(6))
    assert all(row["test_mean"] is not None for row in expected)
    for late in (1, 2, 5, 100):
        pairs = list(train(ALGORITHM, ToyEvaluator(late=late), TRAINING))
        assert rows(pairs) == expected
        assert max(len(state.pending) for state, _ in pairs) == min(1 + (late - 1) // 3, 6)
        complete = []
        for state, records in pairs:  # each finished generation's elite is tested or pending
            complete += [record.generation for record in records]
            waiting = [each.record.generation for each in state.pending]
            assert complete + waiting == list(range(state.generation))
            assert {type(each.record) for each in state.pending} <= {GenerationRecord}
            assert {type(record) for record in records} <= {Record}
        assert pairs[-1][0].pending == ()


def test_elite_evaluation_comes_after_the_next_generation_and_before_the_one_after():
    toy = ToyEvaluator(late=100)
    list(train(ALGORITHM, toy, TRAINING))
    assert toy.priorities[:6] == [0, 0, 3, 2, 2, 5]  # population, validation and test of generations 0 and 1
    for generation in range(5):
        following = episode_priority(generation + 1)
        assert following < elite_evaluation_priority(generation) < episode_priority(generation + 2)
        assert elite_evaluation_priority(generation) < elite_evaluation_priority(generation + 1)


@pytest.mark.parametrize("late", [1, 4, 100])
def test_going_on_from_any_state(late):
    whole = list(train(ALGORITHM, ToyEvaluator(late=late), TRAINING))
    expected = rows(whole)
    for stop, (state, _) in enumerate(whole):
        stored = stored_state(state, ALGORITHM.state_type)
        toy = ToyEvaluator()
        rest = rows(train(ALGORITHM, toy, TRAINING, stored))
        assert rows(whole[: stop + 1]) + rest == expected
        # Only the unfinished half of the episodes is played again.
        half_over = sum(int((each.steps > 0).sum()) for each in stored.pending)
        assert half_over >= 3 * len(stored.pending)
        tests = [call for call in toy.calls if call[0].max_steps == 0]
        assert sum(map(len, tests)) == 7 * (len(stored.pending) + 6 - stored.generation) - half_over


def test_a_run_is_over_when_its_elites_are_evaluated():
    states = [state for state, _ in train(ALGORITHM, ToyEvaluator(late=100), TRAINING)]
    assert [state.generation for state in states] == [1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6]
    assert spent(states[5], TRAINING) and finished(states[5], TRAINING) is None
    assert finished(states[-1], TRAINING) == "after 6 generations"


@pytest.mark.parametrize("late", [0, 1, 100])
def test_run_folders_are_equal(tmp_path, late):
    play(RunFolder.create(tmp_path / "at_once", config()))
    play(RunFolder.create(tmp_path / "late", config()), ToyEvaluator(late=late))
    assert results(tmp_path / "at_once") == results(tmp_path / "late")


@pytest.mark.parametrize("call", range(15))
def test_an_interruption_loses_no_finished_generation(tmp_path, whole_run, call):
    with pytest.raises(KeyboardInterrupt):
        play(RunFolder.create(tmp_path / "run", config()), ToyEvaluator(late=4, interrupt_at=call))
    folder = RunFolder.resume(tmp_path / "run")
    assert folder.state.generation == call // 3
    play(folder)
    assert results(tmp_path / "run") == whole_run()


def test_episodes_that_are_over_are_remembered_exactly():
    pairs = train(ALGORITHM, ToyEvaluator(late=100), TRAINING)
    state, _ = next(pairs)
    [pending] = state.pending
    toy = ToyEvaluator()
    assert isinstance(pending.record.elite, Genome)
    stored = stored_state(state, ALGORITHM.state_type).pending[0]
    np.testing.assert_array_equal(stored.returns, pending.returns)
    np.testing.assert_array_equal(stored.steps, pending.steps)
    [(_, [record])] = train(ALGORITHM, toy, replace(TRAINING, generations=1), state)
    assert toy.calls == [toy.calls[0]] and len(toy.calls[0]) == 4
    assert record.test.steps == pending.steps.sum() + sum(10 + e.seed % 20 for e in toy.calls[0])
