"""OpenAI's evolution strategy of evosax (Lange 2022, https://arxiv.org/abs/2212.04180) on its own BraxProblem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from evosax.algorithms import Open_ES
from evosax.problems import BraxProblem
from evosax.problems.networks import MLP, tanh_output_fn
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from experiments.peers.compiled_environment import registered
from experiments.peers.experiment import Experiment
from experiments.peers.same_network import kernel_initializer
from neuroevo.accelerated.brax_simulator import shared_simulator
from neuroevo.sweeps.implementations import Report

Player = Callable[[jax.Array, Any, Any], Any]
"""See player()."""


def evolve(experiment: Experiment, report: Report) -> None:
    """Run an experiment.

    Args:
        experiment: The experiment.
        report: Function called after each generation.
    """
    training, play, test = _problems(experiment)
    key, init_key, network_key = jax.random.split(jax.random.key(experiment.seed), 3)
    center = training.sample(network_key)
    algorithm = Open_ES(
        experiment.population,
        center,
        optimizer=optax.adam(experiment.learning_rate),
        std_schedule=optax.constant_schedule(experiment.sigma),
    )
    params = algorithm.default_params
    state = algorithm.init(init_key, center, params)
    problem_state = training.init(init_key)

    for _ in range(experiment.generations):
        key, ask_key, play_key, tell_key, test_key = jax.random.split(key, 5)
        population, state = algorithm.ask(ask_key, state, params)
        fitness, problem_state, played = play(play_key, population, problem_state)
        state, _ = algorithm.tell(tell_key, population, -fitness, state, params)  # it minimizes
        center = jax.tree.map(lambda leaf: leaf[None], algorithm.get_mean(state))
        mean, _, tested = test(test_key, center, problem_state)
        steps = {"steps_population": int(played.sum()), "steps_test": int(tested.sum())}
        report(**steps, fitness_mean=float(fitness.mean()), test_mean=float(mean[0]))


def _problems(experiment: Experiment) -> tuple[BraxProblem, Player, Player]:
    """Return the training problem, its player and the test's player."""
    sizes = shared_simulator(experiment.task, experiment.backend)
    network = MLP(
        layer_sizes=(*experiment.hidden, sizes.action_size),
        kernel_init=kernel_initializer(experiment, sizes.observation_size, sizes.action_size),
        output_fn=tanh_output_fn,
    )

    def problem(rollouts: int) -> BraxProblem:
        return BraxProblem(
            registered(experiment.task, experiment.backend),
            network,
            episode_length=experiment.episode_length,
            num_rollouts=rollouts,
            use_normalize_obs=experiment.normalize_observations,
            env_kwargs={},
        )

    training = problem(1)
    return training, player(training, experiment.devices), player(problem(experiment.test_episodes), 1)


def player(problem: BraxProblem, devices: int) -> Player:
    """Compile the evaluation of a population.

    Args:
        problem: The problem to evaluate.
        devices: Number of JAX devices that share the population.

    Returns:
        A function of a key, the population's parameters and the problem's state, that gives fitness [N], the state
        after it, and the steps of all episodes, [N, R].
    """
    mesh = Mesh(np.array(jax.devices()[:devices]), ("devices",))
    sharded, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("devices",), ()))  # type: ignore

    @jax.jit  # so that XLA removes the unused parts of the states of all steps, which evosax returns
    def play(key: jax.Array, population: Any, state: Any) -> Any:
        fitness, state, extra = problem.eval(key, population, state)
        done = extra["env_states"].done > 0
        ends_before = jnp.cumsum(done, axis=-1) - done
        return fitness, state, jnp.sum(ends_before == 0, axis=-1)

    def put_and_play(key: jax.Array, population: Any, state: Any) -> Any:
        key, state = jax.device_put((key, state), everywhere)  # they may come from a player with other devices
        return play(key, jax.device_put(population, sharded), state)

    return put_and_play
