"""Evaluations per second of CMA-ME on HalfCheetah beside pyribs with Gymnasium's vector environments, in turns.

    .venv/bin/python -m experiments.peers.illumination --rounds 3

Both ask the same emitters of pyribs for linear policies of 102 weights, whose behavior is the final position along the
track, and play an episode of 1,000 steps of each. Ours plays them by the algorithm `ribs` and its evaluator; theirs by
gymnasium.make_vec, in processes (async) or in one (sync), whichever is faster here, with policies multiplied in NumPy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import gymnasium
import numpy as np

from neuroevo.algorithms.ribs import Illumination
from neuroevo.config.load import make_config
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.phase import play_phase, played_by

ENV, POPULATION, STEPS = "HalfCheetah-v5", 64, 1000
CONFIG = {
    "env": {"name": ENV},
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


def ours() -> Callable[[], None]:
    """Return a function that plays a generation by our evaluator."""
    config = make_config(CONFIG)
    algorithm, evaluator = config.algorithm, make_evaluator(config)
    state = algorithm.init(0)

    def generation() -> None:
        nonlocal state
        genomes = algorithm.ask(state, evaluator.weights)
        outcomes, _ = play_phase(evaluator, genomes, [[seed] for seed in range(POPULATION)], 0)
        state = algorithm.tell(state, played_by(genomes, outcomes), evaluator.weights)

    return generation


def theirs(mode: str, environments: int) -> Callable[[], None]:
    """Return a function that plays a generation by pyribs and Gymnasium.

    Args:
        mode: "async" or "sync".
        environments: How many are stepped together; a divisor of the population.
    """
    scheduler: Illumination = make_config(CONFIG).algorithm.start(np.zeros(102), 0)
    vector = gymnasium.make_vec(ENV, environments, vectorization_mode=mode)

    def play(policies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        matrices, total = policies.reshape(environments, 17, 6), np.zeros(environments)
        observations, _ = vector.reset(seed=0)
        for _ in range(STEPS):
            actions = np.tanh(np.einsum("ei,eij->ej", observations, matrices))
            observations, rewards, _, _, info = vector.step(actions)
            total += rewards
        return total, info["x_position"]

    def generation() -> None:
        found = [play(part) for part in np.split(scheduler.ask(), POPULATION // environments)]
        fitness, positions = (np.concatenate(each) for each in zip(*found, strict=True))
        scheduler.tell(fitness, np.stack([positions, np.zeros(POPULATION)], axis=1))

    return generation


def main() -> None:
    """Print the medians, and the median ratio to the fastest peer, round by round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    ways = {
        "neuroevo": ours(),
        "sync": theirs("sync", 16),
        "async, 2": theirs("async", 2),
        "async, 8": theirs("async", 8),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for generation in ways.values():
        generation()  # what is compiled and imported at first
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
