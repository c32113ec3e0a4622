"""Compare the evaluations per second of CMA-ME on a robot in neuroevo and in pyribs with Gymnasium's vectors.

    .venv/bin/python -m experiments.peers.illumination --env Walker2d-v5 --rounds 3

Both ask the same pyribs emitters for linear policies, whose behavior is the final position along the track, and play
one episode of each: 1,000 steps of HalfCheetah, or until Walker2d falls. neuroevo uses the algorithm `ribs` and its
evaluator; pyribs uses gymnasium.make_vec in several processes (async) or in one (sync), whichever is faster, with
policies in NumPy and environments that step until their last episode has ended. They are measured in turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import gymnasium
import numpy as np

from neuroevo.algorithms.ribs import Ribs
from neuroevo.config.load import make_config
from neuroevo.config.schema import Config
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.phase import play_phase, played_by

POPULATION = 64


def config_for(env: str) -> Config:
    """Return the configuration of CMA-ME in a Gymnasium environment."""
    return make_config(
        {
            "env": {"name": env},
            "network": {"name": "linear"},
            "algorithm": {
                "name": "ribs",
                "population": POPULATION,
                "emitters": 4,
                "cells": [100, 1],
                "low": [-30.0, -1.0],
                "high": [30.0, 1.0],
            },
            "training": {"generations": 1, "max_episode_steps": "env_default"},
        }
    )


def ours(env: str) -> Callable[[], None]:
    """Return a function that plays a generation with neuroevo's evaluator."""
    config = config_for(env)
    algorithm, evaluator = config.algorithm, make_evaluator(config)
    state = algorithm.init(0)

    def generation() -> None:
        nonlocal state
        genomes = algorithm.ask(state, evaluator.weights)
        outcomes, _ = play_phase(evaluator, genomes, [[seed] for seed in range(POPULATION)], 0)
        state = algorithm.tell(state, played_by(genomes, outcomes), evaluator.weights)

    return generation


def theirs(env: str, mode: str, environments: int) -> Callable[[], None]:
    """Return a function that plays a generation with pyribs and Gymnasium.

    Args:
        env: Name of a Gymnasium environment.
        mode: "async" or "sync".
        environments: Number of environments of the vector; a divisor of the population.
    """
    vector = gymnasium.make_vec(env, environments, vectorization_mode=mode)
    inputs, outputs = vector.single_observation_space.shape[0], vector.single_action_space.shape[0]
    algorithm = config_for(env).algorithm
    assert isinstance(algorithm, Ribs)
    scheduler = algorithm.start(np.zeros(inputs * outputs), 0)

    def play(policies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        matrices = policies.reshape(environments, inputs, outputs)
        total, position, alive = np.zeros(environments), np.zeros(environments), np.ones(environments, bool)
        observations, _ = vector.reset(seed=0)
        while alive.any():
            actions = np.tanh(np.einsum("ei,eij->ej", observations, matrices))
            observations, rewards, terminated, truncated, info = vector.step(actions)
            total[alive] += rewards[alive]
            position[alive] = info["x_position"][alive]
            alive &= ~(terminated | truncated)
        return total, position

    def generation() -> None:
        found = [play(part) for part in np.split(scheduler.ask(), POPULATION // environments)]
        fitness, positions = (np.concatenate(each) for each in zip(*found, strict=True))
        scheduler.tell(fitness, np.stack([positions, np.zeros(POPULATION)], axis=1))

    return generation


def main() -> None:
    """Print the medians, and the median over rounds of the ratio to the fastest peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--rounds", type=int, default=3)
    parsed = parser.parse_args()
    env, rounds = parsed.env, parsed.rounds
    ways = {
        "neuroevo": ours(env),
        "sync": theirs(env, "sync", 16),
        "async, 2": theirs(env, "async", 2),
        "async, 8": theirs(env, "async", 8),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for generation in ways.values():
        generation()  # warm up: compile and import
    for _ in range(rounds):
        for name, generation in ways.items():
            begin = time.perf_counter()
            generation()
            rates[name].append(POPULATION / (time.perf_counter() - begin))
    medians = {name: statistics.median(each) for name, each in rates.items()}
    for name, rate in medians.items():
        print(f"{name}: {rate:,.1f} evaluations/s")
    fastest = max(list(medians)[1:], key=medians.__getitem__)
    ratios = [a / b for a, b in zip(rates["neuroevo"], rates[fastest], strict=True)]
    print(
        f"{statistics.median(ratios):.1f} times the fastest, {fastest} (rounds: {min(ratios):.1f} to {max(ratios):.1f})"
    )


if __name__ == "__main__":
    main()
