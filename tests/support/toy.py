"""Evaluator without TensorFlow, environments or native code: fitness is a noisy distance, weights are NumPy's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from neuroevo.core.episode import Batch, Episode, EpisodeResults, OnResults, Outcomes
from neuroevo.core.evaluator import Progress, Work
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Graft, Kind, LowRank, Scaled
from neuroevo.networks.layers import unpack_weights

PHASES = ("population", "validation", "test")  # of a generation; each is a call of submit()
TARGET = np.linspace(-2.0, 2.0, 8)  # float64 [8]: where the best theta is


@cache
def noise(seed: int) -> np.ndarray:
    """float64 [8], standard normal."""
    return np.random.default_rng(seed).standard_normal(TARGET.size)


@cache
def low_rank_noise(seed: int, rank: int) -> np.ndarray:
    """float64 [8]: of a matrix [4, 2], the only weights of the network."""
    a, b = np.split(np.random.default_rng(seed).standard_normal((rank, 6)), [4], axis=1)
    return (a.T @ b).ravel() / np.sqrt(rank)


def theta(genome: Genome) -> np.ndarray:
    """float64 [8], as genome.py defines it, with 0.1 * noise as initial weights."""
    if genome.mutation is not None and isinstance(genome.mutation.kind, LowRank):
        assert genome.parent is not None
        seed, scale, kind = genome.mutation
        return theta(genome.parent) + scale * low_rank_noise(seed, kind.rank)
    if isinstance(genome.network, str) and "graph" in genome.network:
        return outputs_of(genome)
    base = genome.root.vector.astype(np.float64) if isinstance(genome.root, Center) else 0.1 * noise(genome.root)
    spreads = [
        kind.spread.vector.astype(np.float64) if isinstance(kind, Scaled) else 0.0 if isinstance(kind, Graft) else 1.0
        for _, _, kind in genome.mutations
    ]  # other networks play as well
    return base + sum(s * scale * noise(seed) for s, (seed, scale, _) in zip(spreads, genome.mutations, strict=True))


def outputs_of(genome: Genome) -> np.ndarray:
    """float64 [8]: what a graph makes of the input 1, which a genome with such a network is judged by."""
    assert isinstance(genome.network, str) and isinstance(genome.root, Center)
    (layer,) = unpack_weights(genome.network, genome.root.vector).layers
    assert layer.edges is not None and layer.kernel is not None and layer.bias is not None
    values = np.ones(1)
    for unit, bias in enumerate(layer.bias.astype(np.float64)):
        into = layer.edges[:, 1] == len(values)
        total = bias + np.sum(layer.kernel[into] * values[layer.edges[into, 0]])
        values = np.append(values, total if unit >= len(layer.bias) - layer.outputs else np.tanh(total))
    return values[-layer.outputs :]


class ToyWeights:
    """The Weights protocol, by NumPy."""

    networks = (f"input float32 1; dense {TARGET.size} 1.0",)

    def dimension(self, network: int | str) -> int:
        return TARGET.size

    def theta(self, genome: Genome) -> np.ndarray:
        if isinstance(genome.root, Center) and "graph" in str(genome.network):
            return genome.root.vector
        return theta(genome).astype(np.float32)

    def noise_sum(
        self,
        seeds: Sequence[int],
        factors: Sequence[float],
        network: int = 0,
        kind: Kind = GAUSSIAN,
    ) -> np.ndarray:
        drawn = [low_rank_noise(seed, kind.rank) if isinstance(kind, LowRank) else noise(seed) for seed in seeds]
        terms = [factor * each for factor, each in zip(factors, drawn, strict=True)]
        return np.sum(terms, axis=0, dtype=np.float64).astype(np.float32)

    def noise_sums(
        self, seeds: Sequence[int], factors: Sequence[float], square_factors: Sequence[float], network: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        squares = [factor * (noise(seed) ** 2 - 1) for seed, factor in zip(seeds, square_factors, strict=True)]
        return self.noise_sum(seeds, factors), np.sum(squares, axis=0, dtype=np.float64).astype(np.float32)


def observations(episode: Episode) -> np.ndarray:
    """float64 [20, 2]: what an episode shows of numbers; it depends on genome and seed."""
    spread = np.array([[0.01, 30.0]]) * np.random.default_rng(episode.seed).standard_normal((20, 2))
    return theta(episode.genome)[:2] * 3 + spread


def sums_of(observed: np.ndarray) -> np.ndarray:
    """float64 [5]: count, sums and sums of squares."""
    return np.concatenate([[len(observed)], observed.sum(axis=0), (observed**2).sum(axis=0)])


def call_of(generation: int, phase: str) -> int:
    """Which call of submit() is a phase of a generation, counted from 0, in a run that has all PHASES."""
    return len(PHASES) * generation + PHASES.index(phase)


class ToyEvaluator:
    """Return: minus the distance from theta to TARGET, plus a little noise of the episode's seed, which also says how
    many steps in [10, 30) it would take without the cut-off. With a normalizer it depends on what is seen through that.
    Its behavior is the first two weights, rounded to tenths.
    late: how many of the last submitted batches are only half over as long as no call waits for them. failed: what of
    an episode's simulation fails, by the episode; then its return is 10, which is better than all others."""

    frame_skip = 4
    observation_size = 2
    device = "cpu"
    dimension = TARGET.size
    num_actions = 3
    weights = ToyWeights()

    def __init__(
        self,
        interrupt_at: int | None = None,
        nan_at: int | None = None,
        late: int = 0,
        failed: Callable[[Episode], str] = lambda _: "",
    ):
        self.calls: list[list[Episode]] = []
        self.priorities: list[int] = []
        self.closed = False
        self._interrupt_at, self._nan_at, self._late, self._failed = interrupt_at, nan_at, late, failed
        self._playing: list[tuple[Batch, EpisodeResults]] = []
        self._steps = 0

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        return self.wait(self.submit(episodes), on_progress)

    def submit(self, episodes: Sequence[Episode], priority: int = 0, on_results: OnResults | None = None) -> Batch:
        if len(self.calls) == self._interrupt_at:
            raise KeyboardInterrupt
        failures = [self._failed(episode) for episode in episodes]
        returns = np.array([10.0 if failure else self.play(e) for e, failure in zip(episodes, failures, strict=True)])
        if len(self.calls) == self._nan_at:
            returns[2] = np.nan
        steps = np.array([min(10 + e.seed % 20, e.max_steps or 100) for e in episodes])
        if not episodes:
            return Batch(0, behavior_size=2)
        self.calls.append(list(episodes))
        self.priorities.append(priority)
        self._steps += int(steps.sum())
        batch = Batch(len(episodes), behavior_size=2, on_results=on_results)
        seen = [np.zeros(5) if each.normalizer is None else sums_of(observations(each)) for each in episodes]
        behaviors = np.round([theta(episode.genome)[:2] for episode in episodes], 1)
        ids = np.arange(len(episodes))
        self._playing.append((batch, EpisodeResults(ids, returns, steps, failures, np.array(seen), behaviors)))
        self._book()
        return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = 0.0) -> Outcomes:
        self._book(batch)
        if on_progress is not None and len(batch.steps):
            on_progress(batch.over, int(batch.steps.sum()))
        return batch.outcomes

    def work(self) -> Work:
        return Work(self._steps)

    def _book(self, waited_for: Batch | None = None) -> None:
        """Finish the awaited batch and all but the last `late` batches, and the first half of the last ones."""
        for age, (batch, results) in enumerate(reversed(self._playing)):
            count = len(results) if batch is waited_for or age >= self._late else len(results) // 2
            first, new = batch.over, max(count - batch.over, 0)
            arriving = results.of(first, new)
            batch.book(dataclasses.replace(arriving, ids=arriving.ids + first))

    def play(self, episode: Episode) -> float:
        distance = float(np.linalg.norm(theta(episode.genome) - TARGET))
        seen = 0.0 if episode.normalizer is None else float(episode.normalizer(observations(episode)).sum())
        return -distance + 0.01 * float(np.random.default_rng(episode.seed).standard_normal()) + 1e-3 * seen

    def played(self, generation: int, phase: str) -> list[Episode]:
        """Return the episodes of a phase of a generation, in a run that has all PHASES."""
        return self.calls[call_of(generation, phase)]

    def close(self) -> None:
        self.closed = True
