"""Throughput of our lanes and of evosax on Brax, with the same population, environment and devices."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from evosax.problems import BraxProblem
from evosax.problems.networks import MLP, tanh_output_fn

from experiments.peers.evosax_strategy import player
from experiments.peers.experiment import Experiment
from experiments.peers.same_network import network_of
from neuroevo.accelerated.brax_simulator import shared_simulator
from neuroevo.accelerated.evaluator import AcceleratedEvaluator
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.layers import unpack_weights


class SamePopulation:
    """Population whose genomes play one episode each, in our lanes or with evosax."""

    def __init__(self, experiment: Experiment, lanes: int):
        """Make both evaluators; their programs are compiled at the first use.

        Args:
            experiment: The experiment; its task, backend, network, episode length and devices are used.
            lanes: Number of episodes that our lanes play in parallel.
        """
        simulator = shared_simulator(experiment.task, experiment.backend)
        network = network_of(experiment)
        self.text = network.vector_text(simulator.observation_size, simulator.action_size)
        self._weights = NativeWeights([self.text])
        self._evaluator = AcceleratedEvaluator(
            simulator, network, max_episode_steps=experiment.episode_length, lanes=lanes, devices=experiment.devices
        )
        self._problem = BraxProblem(
            experiment.task,
            MLP(layer_sizes=(*experiment.hidden, simulator.action_size), output_fn=tanh_output_fn),
            episode_length=experiment.episode_length,
            env_kwargs={"backend": experiment.backend},
        )
        self._state = self._problem.init(jax.random.key(0))
        self._play = player(self._problem, experiment.devices)

    def theta(self, genome: Genome) -> np.ndarray:
        """Return a genome's weights, float32 [D]."""
        return self._weights.theta(genome)

    def ours(self, genomes: Sequence[Genome]) -> dict[str, float]:
        """Play genomes in our lanes.

        Args:
            genomes: The genomes.

        Returns:
            useful_per_s, steps until the ends of episodes per second of wall time; useful_share, their share of all
            simulated steps; seconds; mean_steps and mean_return.
        """
        before, begun = self._evaluator.lane_steps, time.perf_counter()
        outcomes = self._evaluator.evaluate([Episode(genome, seed) for seed, genome in enumerate(genomes)])
        seconds = time.perf_counter() - begun
        return _row(outcomes.steps, outcomes.returns, seconds, self._evaluator.lane_steps - before)

    def evosax(self, genomes: Sequence[Genome]) -> dict[str, float]:
        """Play genomes with evosax, with weights decoded beforehand; see ours()."""
        rows = [self._parameters(self._weights.theta(genome)) for genome in genomes]
        population = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
        jax.block_until_ready(population)  # type: ignore[no-untyped-call]
        begun = time.perf_counter()
        fitness, _, steps = self._play(jax.random.key(1), population, self._state)
        played, returns = np.asarray(steps), np.asarray(fitness)
        return _row(played, returns, time.perf_counter() - begun, played.size * self._problem.episode_length)

    def _parameters(self, theta: np.ndarray) -> Any:
        """Return weights under Flax's names."""
        dense = [layer for layer in unpack_weights(self.text, theta).layers if layer.kernel is not None]
        return {"params": {f"Dense_{i}": {"kernel": layer.kernel, "bias": layer.bias} for i, layer in enumerate(dense)}}


def _row(steps: np.ndarray, returns: np.ndarray, seconds: float, simulated: int) -> dict[str, float]:
    return {
        "useful_per_s": float(steps.sum() / seconds),
        "useful_share": float(steps.sum() / simulated),
        "seconds": seconds,
        "mean_steps": float(steps.mean()),
        "mean_return": float(returns.mean()),
    }
