"""OpenAI's evolution strategy of evosax (Lange 2022, https://arxiv.org/abs/2212.04180) on its own BraxProblem."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from evosax.algorithms import Open_ES
from evosax.problems import BraxProblem
from evosax.problems.networks import MLP, tanh_output_fn
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from neuroevo.accelerated.brax_simulator import BraxSimulator
from neuroevo.accelerated.compile_clock import CompileClock
from neuroevo.accelerated.peers.experiment import Experiment, Generation, Report
from neuroevo.accelerated.peers.same_network import kernel_initializer


def evolve(experiment: Experiment, report: Report) -> None:
    """Runs an experiment.

    Args:
        experiment: What is evolved.
        report: Called after each generation.
    """
    clock = CompileClock()
    begun = time.perf_counter()
    sizes = BraxSimulator(experiment.task, experiment.backend)
    network = MLP(
        layer_sizes=(*experiment.hidden, sizes.action_size),
        kernel_init=kernel_initializer(experiment, sizes.observation_size, sizes.action_size),
        output_fn=tanh_output_fn,
    )

    def problem(rollouts: int) -> Any:
        return BraxProblem(
            experiment.task,
            network,
            episode_length=experiment.episode_length,
            num_rollouts=rollouts,
            use_normalize_obs=experiment.normalize_observations,
            env_kwargs={"backend": experiment.backend},
        )

    training, testing = problem(1), problem(experiment.test_episodes)
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

    # Within these functions XLA leaves out what nobody reads of the states of all steps, which evosax returns.
    @jax.jit
    def play(key: jax.Array, population: Any, problem_state: Any) -> Any:
        fitness, problem_state, extra = training.eval(key, population, problem_state)
        return fitness, problem_state, _steps(extra["env_states"].done)

    @jax.jit
    def test(key: jax.Array, center: Any, problem_state: Any) -> Any:
        fitness, _, extra = testing.eval(key, jax.tree.map(lambda leaf: leaf[None], center), problem_state)
        return fitness[0], _steps(extra["env_states"].done)

    mesh = Mesh(np.array(jax.devices()[: experiment.devices]), ("devices",))
    shared = NamedSharding(mesh, PartitionSpec("devices"))  # type: ignore[no-untyped-call]
    steps = test_steps = 0
    for generation in range(1, experiment.generations + 1):
        key, ask_key, play_key, tell_key, test_key = jax.random.split(key, 5)
        population, state = algorithm.ask(ask_key, state, params)
        fitness, problem_state, played = play(play_key, jax.device_put(population, shared), problem_state)
        state, _ = algorithm.tell(tell_key, population, -fitness, state, params)  # it minimizes
        mean, tested = test(test_key, algorithm.get_mean(state), problem_state)
        steps += int(played)
        test_steps += int(tested)
        seconds = time.perf_counter() - begun
        report(Generation(generation, float(mean), steps, test_steps, seconds, clock.seconds()))


def _steps(done: jax.Array) -> jax.Array:
    """Steps to the ends of the first episodes, of done [..., T]."""
    before = jnp.cumsum(done > 0, axis=-1) - (done > 0)  # ends before each step
    return jnp.sum(before == 0)
