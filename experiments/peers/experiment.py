"""One evolution strategy on one of Brax's tasks, as every implementation of a comparison trains it."""

from __future__ import annotations

from dataclasses import dataclass

from neuroevo.algorithms.es import ES
from neuroevo.algorithms.optimizers import Adam
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError


@dataclass(frozen=True)
class Experiment:
    """What is evolved: antithetic pairs around one center, centered ranks, Adam.

    Attributes:
        task: Brax's name of the environment.
        backend: Its physics.
        seed: Everything random follows from it.
        population: N, an even number: genomes per generation, each of which plays one episode.
        sigma: Standard deviation of the noise.
        learning_rate: Adam's.
        hidden: Units of the network's hidden layers, with tanh after each and after the output.
        normalize_observations: Whether the mean of what was seen is subtracted, and divided by its deviation.
        episode_length: Steps after which an episode is cut off.
        generations: G.
        test_episodes: Episodes of the center after each generation.
        devices: How many of JAX's devices to use; where there is no GPU, cores.
    """

    task: str
    backend: str
    seed: int
    population: int
    sigma: float
    learning_rate: float
    hidden: tuple[int, ...]
    normalize_observations: bool
    episode_length: int
    generations: int
    test_episodes: int
    devices: int

    @staticmethod
    def of(config: Config) -> Experiment:
        """Read a configuration. UserError: it has what other implementations do not do."""
        algorithm, network, options = config.algorithm, config.network, config.environment.options
        generations = config.training.generations
        expected = {
            'env.name = "brax:TASK"': config.environment.family == "brax",
            'algorithm.name = "es"': isinstance(algorithm, ES),
            'network.name = "mlp"': network.name == "mlp",
            "training.generations": generations is not None,
            "training.test_episodes": config.training.test_episodes > 0,
        }
        if isinstance(algorithm, ES):
            expected["algorithm.weight_decay = 0"] = algorithm.weight_decay == 0
            expected["algorithm.optimizer.type = 'adam'"] = isinstance(algorithm.optimizer, Adam)
            expected["algorithm.sigma, a number"] = isinstance(algorithm.sigma, float | int)
        for what, found in expected.items():
            if not found:
                raise UserError(
                    f"other implementations are compared with the evolution strategy alone: expected {what}"
                )
        return Experiment(
            task=config.environment.name.partition(":")[2],
            backend=options.backend,
            seed=config.training.seed,
            population=algorithm.population,
            sigma=algorithm.sigma,
            learning_rate=algorithm.optimizer.learning_rate,
            hidden=tuple(network.hidden),
            normalize_observations=network.normalize_observations,
            episode_length=options.max_episode_steps,
            generations=generations,
            test_episodes=config.training.test_episodes,
            devices=options.devices,
        )
