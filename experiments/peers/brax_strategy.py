"""Brax's own evolution strategy, brax.training.agents.es, with neuroevo's network."""

from __future__ import annotations

import contextlib
from typing import Any

from brax.training import distribution, networks
from brax.training.agents.es import networks as es_networks
from brax.training.agents.es import train as es
from flax import linen

from experiments.peers.compiled_environment import compiled_environment
from experiments.peers.experiment import Experiment
from experiments.peers.same_network import kernel_initializer
from neuroevo.sweeps.implementations import Report

_MANY = 10**12  # number of steps and of tests that no comparison reaches


class _Enough(Exception):
    """Exception that ends Brax's training, which counts steps, after a number of generations."""


class _Tanh(distribution.ParametricDistribution):  # type: ignore[misc] # Brax has no types
    """Deterministic distribution whose actions are the tanh of the outputs."""

    def __init__(self, action_size: int):
        super().__init__(action_size, postprocessor=distribution.TanhBijector(), event_ndims=1, reparametrizable=True)

    def create_dist(self, parameters: Any) -> Any:
        """Return an object with mode() and sample()."""
        return _Point(parameters)


class _Point:
    def __init__(self, value: Any):
        self._value = value

    def sample(self, seed: Any) -> Any:  # noqa: ARG002 - deterministic
        return self._value

    def mode(self) -> Any:
        return self._value


def evolve(experiment: Experiment, report: Report) -> None:
    """Run an experiment.

    Args:
        experiment: The experiment.
        report: Function called after each generation.
    """
    environment = compiled_environment(experiment.task, experiment.backend)

    def make_networks(
        observation_size: int, action_size: int, preprocess_observations_fn: Any
    ) -> es_networks.ESNetworks:
        policy = networks.make_policy_network(
            action_size,
            observation_size,
            preprocess_observations_fn=preprocess_observations_fn,
            hidden_layer_sizes=experiment.hidden,
            activation=linen.tanh,
            kernel_init=kernel_initializer(experiment, observation_size, action_size),
        )
        return es_networks.ESNetworks(policy, _Tanh(action_size))

    tests = before = 0

    def on_test(steps: int, metrics: dict[str, Any]) -> None:
        nonlocal tests, before
        if tests:  # the first is of the initial center
            report(
                steps_population=steps - before,
                steps_test=round(float(metrics["eval/avg_episode_length"]) * experiment.test_episodes),
                test_mean=float(metrics["eval/episode_reward"]),
            )
        tests, before = tests + 1, steps
        if tests > experiment.generations:
            raise _Enough

    with contextlib.suppress(_Enough):
        es.train(
            environment,
            num_timesteps=_MANY,
            episode_length=experiment.episode_length,
            max_devices_per_host=experiment.devices,
            population_size=experiment.population // 2,
            learning_rate=experiment.learning_rate,
            fitness_shaping=es.FitnessShaping.CENTERED_RANK,
            num_eval_envs=experiment.test_episodes,
            perturbation_std=experiment.sigma,
            seed=experiment.seed,
            normalize_observations=experiment.normalize_observations,
            num_evals=_MANY,
            deterministic_eval=True,
            network_factory=make_networks,
            progress_fn=on_test,
        )
