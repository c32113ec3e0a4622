"""Definition of an experiment, an evolution strategy on a Brax task, shared by all compared implementations."""

from __future__ import annotations

from dataclasses import dataclass

from neuroevo.algorithms.es import ES
from neuroevo.algorithms.optimizers import Adam
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError


@dataclass(frozen=True)
class Experiment:
    """Evolution strategy with antithetic pairs around one center, centered ranks and Adam.

    Attributes:
        task: Brax's name of the environment.
        backend: Brax's name of the physics engine.
        seed: Seed that determines all random numbers.
        population: Genomes per generation, N, an even number; each plays one episode.
        sigma: Standard deviation of the noise.
        learning_rate: Learning rate of Adam.
        hidden: Units of the network's hidden layers, with tanh after each and after the output.
        normalize_observations: Whether to normalize observations by their running mean and standard deviation.
        episode_length: Steps after which an episode is cut off.
        generations: Number of generations, G.
        test_episodes: Episodes of the center after each generation.
        devices: Number of JAX devices to use; without a GPU, CPU cores.
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
        """Read a configuration. Raise UserError if other implementations do not support it."""
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
