"""Episodes through the whole pipeline: identical outcomes for every layout, and failures that reach the caller."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from neuroevo.core.behavior import Behavior
from neuroevo.core.episode import Episode, Outcomes
from neuroevo.core.genome import Genome, grow
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.networks import architectures
from neuroevo.networks.network import Network
from neuroevo.rollout.evaluator import LocalEvaluator
from tests.support.native_rollout import run_episodes

LAYOUTS = [(1, 1, 1), (3, 5, 4)]  # lanes, slots of each, threads
SECONDS = 120  # until a subprocess counts as hung, on a busy machine


def some_episodes(count: int, max_steps: int) -> list[Episode]:
    """Return episodes of `count` genomes with chains of 0 to 3 mutations, some of them siblings, some played twice."""
    rng = random.Random(count)
    genomes = [Genome(base) for base in range(count // 4)]
    while len(genomes) < count:
        genomes.append(rng.choice(genomes[: count // 2]).child(len(genomes), float(np.float32(0.05))))
    episodes = [Episode(genome, 100 + i, max_steps + i % 7) for i, genome in enumerate(genomes)]
    return episodes + [Episode(genome, 7, max_steps) for genome in genomes[::8]]


def play(
    network: str | Network | list[Network], episodes: list[Episode], lanes: int, slots: int, **options: object
) -> Outcomes:
    with LocalEvaluator("frostbite", network, lanes=lanes, slots=slots, **options) as evaluator:
        return evaluator.evaluate(episodes)


def assert_same(one: Outcomes, other: Outcomes) -> None:
    np.testing.assert_array_equal(one.returns, other.returns)
    np.testing.assert_array_equal(one.steps, other.steps)


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return some_episodes(24, max_steps=60)


@pytest.fixture(scope="module")
def expected(episodes: list[Episode]) -> Outcomes:
    """Return the outcomes of the runner without TensorFlow, one episode after another, with the reference backend."""
    library.set_threads(1)
    return run_episodes(registry.resolve("frostbite"), [architectures.model], episodes, lanes=1, slots=1)


def test_the_oracle_tells_episodes_apart(expected: Outcomes) -> None:
    assert len(set(expected.steps)) > 5 and len(set(expected.returns)) > 3


@pytest.mark.parametrize(("lanes", "slots", "threads"), LAYOUTS)
def test_every_layout_equals_the_oracle(episodes, expected, lanes: int, slots: int, threads: int, engine: str) -> None:
    assert_same(play("model", episodes, lanes, slots, threads=threads, engine=engine), expected)


def test_runner_without_tensorflow_equals_the_oracle(episodes, expected) -> None:
    library.set_threads(3)
    recipe = registry.resolve("frostbite")
    assert_same(run_episodes(recipe, [architectures.model], episodes, lanes=2, slots=8), expected)


def test_order_and_rows_of_parents_do_not_matter(episodes, expected, engine) -> None:
    order = random.Random(1).sample(range(len(episodes)), len(episodes))
    for parent_rows in (1, 40):
        options = {"threads": 2, "parent_rows": parent_rows, "engine": engine}
        shuffled = play("model", [episodes[i] for i in order], 2, 3, **options)
        np.testing.assert_array_equal(shuffled.returns, expected.returns[order])
        np.testing.assert_array_equal(shuffled.steps, expected.steps[order])


@pytest.fixture(scope="module")
def few_by_reference() -> tuple[list[Episode], Outcomes]:
    """Episodes of LargeModels, and their outcomes with the reference backend."""
    few = some_episodes(8, max_steps=6)
    library.set_threads(2)
    layout = {"lanes": 1, "slots": 2, "backend": "reference"}
    return few, run_episodes(registry.resolve("frostbite"), [architectures.large_model], few, **layout)


def test_reference_backend_and_large_model(few_by_reference, engine) -> None:
    few, oracle = few_by_reference
    assert_same(play("large_model", few, 2, 2, engine=engine), oracle)


def test_two_networks_in_one_evaluator_play_as_each_alone(engine) -> None:
    both = [Episode(Genome(i // 2, network=i % 2).child(i, 0.01), i, 80) for i in range(12)]
    together = play(["model", "nature_dqn"], both, 2, 3, engine=engine)
    for network, name in enumerate(["model", "nature_dqn"]):
        own = [
            Episode(grow(Genome(e.genome.root), e.genome.mutations), e.seed, 80)
            for e in both
            if e.genome.network == network
        ]
        alone = play(name, own, 1, 2, engine=engine)
        np.testing.assert_array_equal(together.returns[network::2], alone.returns)
        np.testing.assert_array_equal(together.steps[network::2], alone.steps)


def test_evaluator_again_and_beside_another(episodes, expected, engine) -> None:
    with (
        LocalEvaluator("frostbite", "model", lanes=2, slots=2, engine=engine) as one,
        LocalEvaluator("pong", "model", lanes=1, engine=engine) as other,
    ):
        seen = []
        first = one.evaluate(episodes[:9], lambda finished, steps: seen.append((finished, steps)))
        pong = other.evaluate([Episode(Genome(0), 0, 50)])
        assert_same(one.evaluate(episodes[:9]), first)
        np.testing.assert_array_equal(first.returns, expected.returns[:9])
        assert pong.steps.tolist() == [50]
        assert seen[-1] == (9, first.steps.sum()) and seen == sorted(seen)
        assert one.evaluate([]).returns.shape == (0,)


def test_a_failure_in_a_lane_reaches_the_caller(engine: str) -> None:
    for genome, reason in (
        (Genome(0, network=7), r"network 7 is out of range \[0, 1\)"),
        (Genome(0).child(1, float("nan")), "scale 0 is nan, expected a finite number"),
    ):
        evaluator = LocalEvaluator("frostbite", "model", lanes=2, slots=2, engine=engine)
        with pytest.raises(Exception, match=reason):
            evaluator.evaluate([Episode(Genome(i), i, 50) for i in range(6)] + [Episode(genome, 0, 50)])
        with pytest.raises(RuntimeError, match="the evaluator is closed"):
            evaluator.evaluate([Episode(Genome(0), 0, 50)])


@pytest.mark.parametrize("threads", [2**32 + 1, 4097, 0])
def test_threads_out_of_range(threads):
    before = library.get_threads()
    with pytest.raises(ValueError, match=f"{threads}, expected"):
        library.set_threads(threads)
    assert library.get_threads() == before


def test_ctrl_c_ends_an_evaluation_and_close_gives_the_memory_back(engine) -> None:
    """In one process, which leaves cleanly without having closed its last evaluator."""
    code = f"""
        evaluator = LocalEvaluator("frostbite", "model", lanes=2, slots=2, engine="{engine}")
        try:
            episodes = [Episode(Genome(i), i, 0 if i else 1) for i in range(10_000)]
            evaluator.evaluate(episodes, lambda finished, steps: print("playing", flush=True))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        def resident_mb():
            return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
        sizes = []
        for i in range(3):
            evaluator = LocalEvaluator("frostbite", "large_model", lanes=1, slots=4, engine="{engine}")
            evaluator.evaluate([Episode(Genome(j).child(k, 0.1), k, 3) for j in range(6) for k in range(2)])
            sizes.append(resident_mb())  # 10 rows of 16 MB are filled
            evaluator.close()
            evaluator.close()
        print(sizes[-1] - sizes[0])
        evaluator = LocalEvaluator("frostbite", "model", lanes=2, slots=2, engine="{engine}")
        print(evaluator.evaluate([Episode(Genome(0), 0, 20)]).steps)
        """
    imports = "from neuroevo.rollout.tensorflow_import import skip_optional_imports\nskip_optional_imports()\n"
    imports += "from neuroevo.rollout.evaluator import LocalEvaluator\nfrom neuroevo.core.episode import Episode\n"
    imports += "from neuroevo.core.genome import Genome\n"
    process = subprocess.Popen(
        [sys.executable, "-c", imports + textwrap.dedent(code)], stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell's "&" ignores it
    )  # fmt: skip
    assert process.stdout.readline() == "playing\n"  # from inside evaluate()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=SECONDS)
    said, grown, steps = output.replace("playing\n", "").splitlines()
    assert (said, steps, process.returncode) == ("interrupted", "[20]", 0)
    assert float(grown) < 160


ELITE = Genome(1).child(2, 0.05)
BACKGROUND = [Episode(ELITE.child(k % 2, 0.01), k, 120) for k in range(6)]
URGENT = [[Episode(Genome(7 + g).child(i % 3, 0.1).child(i, 0.1), i, 90) for i in range(9)] for g in range(3)]


@pytest.fixture(scope="module")
def one_after_another() -> list[Outcomes]:
    """Outcomes of BACKGROUND and of each batch of URGENT."""
    with LocalEvaluator("frostbite", "model", threads=2, lanes=2, slots=1, behavior=Behavior()) as plain:
        outcomes = [plain.evaluate(episodes) for episodes in (BACKGROUND, *URGENT)]
    memories = [memory.tobytes() for each in outcomes for memory in each.behaviors]
    assert len(set(memories)) > 20  # of 33: a wrong network shows in the emulator's memory where it ends
    return outcomes


@pytest.mark.parametrize("parent_rows", [1, None])
def test_batches_beside_each_other(one_after_another, parent_rows, engine):
    """Episodes preempted by more urgent ones, whose parent's row is reused meanwhile, have the same outcomes."""
    background, *urgent = one_after_another
    options = {"threads": 2, "lanes": 2, "slots": 1, "parent_rows": parent_rows, "engine": engine}
    with LocalEvaluator("frostbite", "model", behavior=Behavior(), **options) as evaluator:
        later = evaluator.submit(BACKGROUND, 5)
        played = [evaluator.wait(evaluator.submit(episodes, 2)) for episodes in URGENT]
        played += [evaluator.wait(later), evaluator.wait(later)]  # waiting again costs nothing
        for outcomes, expected in zip(played, [*urgent, background, background], strict=True):
            assert_same(outcomes, expected)
            np.testing.assert_array_equal(outcomes.behaviors, expected.behaviors)
        assert evaluator.work().steps == sum(int(outcomes.steps.sum()) for outcomes in one_after_another)
        assert evaluator.work().busy_seconds > 0
        assert evaluator.submit([]).left == 0


def test_urgent_episodes_do_not_wait_for_others(engine):
    with LocalEvaluator("frostbite", "model", threads=1, lanes=1, slots=1, engine=engine) as evaluator:
        later = evaluator.submit([Episode(Genome(i), i, 20) for i in range(50)], 9)
        evaluator.evaluate([Episode(Genome(100), 0, 20)])
        assert later.left >= 40
        evaluator.wait(later)
        assert (later.steps == 20).all()
