"""Edge cases of episodes through the whole pipeline, and cleanup after errors."""

import threading
from pathlib import Path

import numpy as np
import pytest

import neuroevo
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.envs import registry
from neuroevo.networks import architectures
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from tests.support.native_rollout import run_episodes

HUGE = 6e11  # mutation scale that makes some activations infinite and some outputs NaN


@pytest.fixture
def evaluator(engine):
    """Makes evaluators of each engine."""
    return lambda **options: LocalEvaluator("freeway", "model", **{"lanes": 2, "slots": 2, "engine": engine, **options})


def lanes():
    """Return the names of lane threads, Python's and the native core's; a test must not leave any running."""
    native = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    names = [thread.name for thread in threading.enumerate()] + native
    return sorted(name for name in names if name == "lane" or name.startswith("lane "))


def test_outputs_that_are_not_numbers_choose_alike_everywhere(engine):
    # Argmax of NaN must be the same in the graph and in the runner. With the first two seeds, an argmax that cannot
    # leave a NaN in the first position would give another return.
    episodes = [Episode(Genome(seed).child(seed, HUGE), seed, 100) for seed in (19, 29, 1, 2)]
    episodes += [Episode(Genome(0).child(1, 3e38).child(2, 3e38).child(3, -3e38), 0, 20)]
    expected = run_episodes(registry.resolve("space_invaders"), [architectures.model], episodes, lanes=1, slots=1)
    for lane_count, slots in ((1, 1), (2, 3)):
        with LocalEvaluator("space_invaders", "model", lanes=lane_count, slots=slots, engine=engine) as made:
            outcomes = made.evaluate(episodes)
        assert np.array_equal(outcomes.returns, expected.returns)
        assert np.array_equal(outcomes.steps, expected.steps)


def test_more_slots_than_episodes_and_episodes_of_one_step(evaluator):
    with evaluator(lanes=3, slots=4) as many:
        outcomes = many.evaluate([Episode(Genome(0), 0, 1)])
        assert (outcomes.returns.tolist(), outcomes.steps.tolist()) == ([0.0], [1])
        assert many.evaluate([Episode(Genome(0), seed, 1) for seed in range(50)]).steps.tolist() == [1] * 50
        extremes = [
            Episode(Genome(base).child(base, 0.1), seed, 2) for base in (0, 2**63 - 1) for seed in (0, 2**63 - 1)
        ]
        assert many.evaluate(extremes).steps.tolist() == [2] * 4


@pytest.mark.parametrize(
    ("episode", "error", "message"),
    [
        (Episode(Genome(0), 0, -1), Exception, "max_frames of episode 2 is -4, expected"),
        (Episode(Genome(0), 2**63, 1), OverflowError, "too large"),
        (Episode(Genome(0), 0, 2**62), OverflowError, "too large"),
        (Episode(Genome(0).child(1, float("inf")), 0, 1), Exception, "scale 0 is inf, expected a finite number"),
        (Episode(Genome(0, network=-1), 0, 1), Exception, "network of genome 2 is -1"),
    ],
)
def test_bad_episodes_close_the_evaluator_and_leave_no_thread(evaluator, episode, error, message):
    before = lanes()
    failing = evaluator()
    assert len(lanes()) == len(before) + 2
    with pytest.raises(error, match=message):
        failing.evaluate([Episode(Genome(0), 0, 5), Episode(Genome(1), 0, 5), episode])
    assert lanes() == before
    siblings = [Episode(Genome(0).child(seed, 0.1), 0, 5) for seed in range(3)]  # their parent would be computed first
    for episodes in (siblings, [Episode(Genome(0), 0, 5)]):
        with pytest.raises(RuntimeError, match="closed"):
            failing.evaluate(episodes)
    failing.close()


def test_a_bad_parent_is_told_as_well(evaluator):
    before = lanes()
    siblings = [Episode(Genome(0).child(0, float("nan")).child(seed, 0.1), 0, 5) for seed in range(3)]
    with pytest.raises(Exception, match="scale 0 is nan"):
        evaluator().evaluate(siblings)
    assert lanes() == before


def test_an_exception_of_on_progress_reaches_the_caller(evaluator):
    def fail(finished, steps):
        raise LookupError(f"{finished} finished")

    before = lanes()
    with pytest.raises(LookupError, match="finished"):
        evaluator().evaluate([Episode(Genome(i), i, 5) for i in range(20)], fail)
    assert lanes() == before


def test_progress_is_told_of_while_no_episode_ends(evaluator):
    heard = []
    with evaluator(lanes=1, slots=1) as plays:
        outcomes = plays.evaluate([Episode(Genome(1), 1, 2000)], lambda *told: heard.append(told))
    assert heard[0] == (0, 0)
    assert heard[-1] == (1, int(outcomes.steps[0]))


def test_mistakes_in_the_arguments(evaluator):
    before = lanes()
    for options, message in (
        ({"env": "freewy"}, "did you mean freeway?"),
        ({"network": "modle"}, "network 'modle' is unknown; did you mean model?"),
        ({"threads": 0}, "threads is 0, expected at least 1"),
        ({"lanes": -1}, "lanes is -1, expected at least 1"),
        ({"slots": 0}, "slots is 0, expected at least 1"),
        ({"parent_rows": 0}, "parent_rows is 0, expected at least 1"),
        ({"engine": "tensrflow"}, "engine 'tensrflow' is unknown; did you mean tensorflow?"),
    ):
        with pytest.raises(UserError) as caught:
            LocalEvaluator(**{"env": "freeway", "network": "model", **options})
        assert message in str(caught.value)
    for options, message in (
        ({"env_options": {"sticky": 0.25}}, "env.options.sticky = 0.25: there is no such key"),
        ({"backend": "gpu"}, "backend is 'gpu', expected 'cpu' or 'reference'"),
    ):
        with pytest.raises(Exception, match=message):
            evaluator(**options)
    assert lanes() == before


def test_rows_that_memory_has_no_room_for_are_refused(engine):
    large = Network(name="mlp", hidden=(8192, 8192))  # 0.27 GB
    need = r"the population cannot be made: \d+ rows of networks need \d+(\.\d+)? GB of memory"
    with pytest.raises(UserError, match=need + ", but only .* GB are free$") as caught:
        LocalEvaluator("hard_maze", large, lanes=1, slots=30000, engine=engine)
    assert "\n" not in str(caught.value)


def test_a_run_that_memory_has_no_room_for_does_not_start(tmp_path):
    with pytest.raises(UserError, match="rows of networks need .* GB of memory, but only .* GB are free"):
        changes = {"env.name": "hard_maze", "network.name": "mlp", "network.hidden": [8192, 8192]}
        neuroevo.train("smoke", {**changes, "hardware.lanes": 1, "hardware.slots": 30000}, out=tmp_path / "run")
