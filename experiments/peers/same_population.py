"""The same population, on the same environment and devices: our lanes, and evosax's evaluation of Brax, measured."""

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
    """Plays an episode of each genome, as often as it is asked to."""

    def __init__(self, experiment: Experiment, lanes: int):
        """Make both; their programs are compiled at their first use.

        Args:
            experiment: Its task, backend, network, episode length and devices count.
            lanes: How many episodes we play side by side.
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
        """Its weights, float32 [D]."""
        return self._weights.theta(genome)

    def ours(self, genomes: Sequence[Genome]) -> dict[str, float]:
        """Plays them in our lanes.

        Args:
            genomes: Who plays.

        Returns:
            useful_per_s, steps up to the ends of episodes by the wall time; useful_share, these steps by all that were
            simulated; seconds; mean_steps and mean_return.
        """
        before, begun = self._evaluator.lane_steps, time.perf_counter()
        outcomes = self._evaluator.evaluate([Episode(genome, seed) for seed, genome in enumerate(genomes)])
        seconds = time.perf_counter() - begun
        return _row(outcomes.steps, outcomes.returns, seconds, self._evaluator.lane_steps - before)

    def evosax(self, genomes: Sequence[Genome]) -> dict[str, float]:
        """Plays them with evosax; weights are made beforehand. See ours()."""
        rows = [self._parameters(self._weights.theta(genome)) for genome in genomes]
        population = jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)
        jax.block_until_ready(population)  # type: ignore[no-untyped-call]
        begun = time.perf_counter()
        fitness, _, steps = self._play(jax.random.key(1), population, self._state)
        played, returns = np.asarray(steps), np.asarray(fitness)
        return _row(played, returns, time.perf_counter() - begun, played.size * self._problem.episode_length)

    def _parameters(self, theta: np.ndarray) -> Any:
        """As Flax names them."""
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
