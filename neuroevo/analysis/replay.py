"""Stepwise replay of a run's networks by the native core, without TensorFlow."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.genome import GAUSSIAN, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population, padded
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.architectures import network_text
from neuroevo.rollout.row_cache import needed_rows


@dataclass(frozen=True)
class ReplayStep:
    """State of the M slots after a reset or step.

    Attributes:
        moved: Slots that were reset or stepped, int64 [K], ascending.
        playing: Whether the episode of each slot continues, bool [M].
        returns: Return of each slot so far, float64 [M].
        steps: Steps of each slot so far, int64 [M].
        actions: Actions of the stepped slots, int32 [K] or float32 [K, A]; None after the reset.
    """

    moved: np.ndarray
    playing: np.ndarray
    returns: np.ndarray
    steps: np.ndarray
    actions: np.ndarray | None = None


class Replay:
    """Replay of M genomes in the environment of a configuration; genome m plays in slot m.

    Args:
        config: The configuration with the environment and the network.
        genomes: The M genomes.
        normalizer: Normalizer of the observations of all genomes; None if they are not normalized.
        reference_batch: Observations from which vbn layers compute their statistics, [B, ...].

    Attributes:
        pool: The native environments, M slots.
        population: The native networks: a row for each genome, and for the parents of genomes whose weights are not
            materialized.
        rows: The row of each genome, int64 [M].
        network: The first genome's list of layers in text form.
        weights: Converter of genomes to weights.

    Raises:
        UserError: A requirement of the environment is missing.
        NativeError: The environment rejects its options.
    """

    def __init__(
        self,
        config: Config,
        genomes: Sequence[Genome],
        normalizer: Normalizer | None = None,
        reference_batch: np.ndarray | None = None,
    ):
        self.pool = EnvPool(config.environment.spec, len(genomes))
        layers = functools.partial(config.network.lines, continuous_actions=self.pool.action_dtype == np.float32)
        shown = self.pool.observation_dtype.name, self.pool.observation_shape
        configured = network_text(layers, *shown, self.pool.num_actions)
        self.weights = NativeWeights([configured])
        texts = list(dict.fromkeys(self.weights.text(genome.network) for genome in genomes))
        self.network = texts[0]
        kind = next((each.kind for each in genomes if not each.kind.materialized), GAUSSIAN)
        members = not kind.materialized
        held = needed_rows(genomes, kind) if members else list(genomes)
        count, dtype = len(held) + (len(genomes) if members else 0), config.network.dtype
        self.population = Population(texts, count, dtype=dtype, float_rows=len(held), kind=kind)
        networks = [texts.index(self.weights.text(each.network)) for each in held]
        thetas = padded([self.weights.theta(each) for each in held], self.population.dimensions)
        self.population.assign(range(len(held)), networks, thetas)
        self._slots = np.arange(len(genomes))
        self.rows = self._slots if not members else self._rows_of(genomes, held)
        if reference_batch is not None:
            self.population.set_reference(reference_batch)
        self.population.prepare(self.rows)
        self._normalizers = None if normalizer is None else [0] * len(genomes)
        if normalizer is not None:
            self.pool.set_normalizer(0, normalizer.mean, normalizer.std)

    def thetas(self) -> np.ndarray:
        """Return the weights of all genomes, float32 [M, D of the largest network]."""
        return self.population.read(self.rows)

    def _rows_of(self, genomes: Sequence[Genome], held: Sequence[Genome]) -> np.ndarray:
        """Return the row of each genome, int64 [M]: a row of `held`, or a perturbed row after these."""
        rows = []
        for slot, genome in enumerate(genomes):
            if genome.kind.materialized or genome.mutation is None or genome.parent is None:
                rows.append(held.index(genome))
            else:
                rows.append(len(held) + slot)
                seed, scale, _ = genome.mutation
                self.population.perturb(rows[-1:], [held.index(genome.parent)], [seed], [scale])
        return np.array(rows, np.int64)

    def play(self, seed: int, max_episode_steps: int = 0) -> Iterator[ReplayStep]:
        """Play one episode of all genomes in parallel, each from the same seed.

        Args:
            seed: Seed of the episode.
            max_episode_steps: Steps after which the episode is cut off; 0 means the environment's own limit.

        Yields:
            A ReplayStep after the reset and after every step.
        """
        pool, slots = self.pool, self._slots
        limits = [max_episode_steps * pool.frame_skip] * len(slots)
        self.population.clear_states(slots)
        pool.reset(slots, [seed] * len(slots), limits, normalizers=self._normalizers)
        observe = pool.observe if pool.observation_dtype == np.uint8 else pool.observe_normalized
        playing, returns, steps = np.ones(len(slots), bool), np.zeros(len(slots)), np.zeros(len(slots), np.int64)
        yield ReplayStep(slots, playing.copy(), returns.copy(), steps.copy())
        while playing.any():
            moved = slots[playing]
            outputs = self.population.forward(self.rows[moved], observe(moved), self.population.outputs, moved)
            actions = pool.actions(outputs)
            rewards, dones = pool.step(moved, actions)
            returns[moved] += rewards
            steps[moved] += 1
            playing[moved] = ~dones
            yield ReplayStep(moved, playing.copy(), returns.copy(), steps.copy(), actions)
