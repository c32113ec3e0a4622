"""Compare NEAT in neuroevo and in neat-python by the number of genomes evaluated until a task is solved.

    pip install 'neuroevo[compare]'
    python -m experiments.peers.neat [--seeds 20] [--tasks xor cartpole] [--generations 200]

Both use the same population size, episodes per genome and criterion: XOR is solved by a sum of squared errors below
0.1, which puts all four outputs on the correct side of 0.5, CartPole by 500 steps in each of 5 episodes. neat-python
uses the settings of its XOR example on both tasks. All genomes of a generation count, and a run that does not solve the
task counts all genomes that it has evaluated.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import neat
import numpy as np

from experiments.examples.xor import OUTPUTS, PAIRS
from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.config.load import make_config
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.callback import Callback
from neuroevo.training.loop import train

# For each task: environment, population, episodes per genome, fitness of a solution, inputs and outputs.
TASKS: dict[str, tuple[str, int, int, float, int, int]] = {
    "xor": ("gymnasium:experiments.examples.xor:XOR-v0", 150, 1, 3.9, 2, 1),
    "cartpole": ("gymnasium:CartPole-v1", 20, 5, 500.0, 4, 2),
}


class _Solved(Exception):
    """Exception that ends a run when the task is solved."""


class _Count(Callback):
    """Callback that counts genomes until one reaches a fitness."""

    def __init__(self, fitness: float):
        self.genomes, self._fitness = 0, fitness

    def population(
        self, generation: int, played: EvaluatedPopulation, steps: np.ndarray, novelties: np.ndarray | None
    ) -> None:  # noqa: ARG002
        self.genomes += len(played.genomes)
        if played.fitness.max() >= self._fitness:
            raise _Solved


def ours(task: str, seed: int, generations: int) -> int:
    """Return the number of genomes that neuroevo's NEAT evaluates."""
    env, population, episodes, fitness, _, _ = TASKS[task]
    config = make_config(
        {
            "env": {"name": env},
            "network": {"name": "mlp"},
            "algorithm": {"name": "neat", "population": population, "validation_candidates": 2},
            "training": {
                "seed": seed,
                "episodes": episodes,
                "generations": generations,
                "max_episode_steps": "env_default",
                "validation_episodes": 1,
                "test_episodes": 0,
            },
        }
    )
    count = _Count(fitness)
    with make_evaluator(config) as evaluator:
        try:
            for _ in train(config.algorithm, evaluator, config.training, callback=count):
                pass
        except _Solved:
            pass
    return count.genomes


def theirs(task: str, seed: int, generations: int) -> int:
    """Return the number of genomes that neat-python evaluates."""
    env, population, episodes, fitness, inputs, outputs = TASKS[task]
    random.seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "neat.ini")
        path.write_text(_ini(population, fitness, inputs, outputs))
        kinds = (neat.DefaultGenome, neat.DefaultReproduction, neat.DefaultSpeciesSet, neat.DefaultStagnation)
        config = neat.Config(*kinds, str(path))
    evaluate = _xor if task == "xor" else _episodes(gymnasium.make(env.removeprefix("gymnasium:")), seed, episodes)
    genomes = 0

    def evaluate_all(members: list[tuple[int, Any]], config: Any) -> None:
        nonlocal genomes
        for _, member in members:
            member.fitness = evaluate(neat.nn.FeedForwardNetwork.create(member, config), genomes // population)
        genomes += len(members)

    try:
        neat.Population(config).run(evaluate_all, generations)
    except neat.CompleteExtinctionException:
        return population * generations
    return genomes


def _xor(network: Any, _: int) -> float:
    outputs = [network.activate(pair)[0] for pair in PAIRS.tolist()]
    return 4 - sum((output - target) ** 2 for output, target in zip(outputs, OUTPUTS, strict=True))


def _episodes(env: gymnasium.Env, seed: int, episodes: int) -> Callable[[Any, int], float]:
    """Return a function of a network and the generation, whose episodes are the same for all genomes."""

    def play(network: Any, generation: int) -> float:
        total = 0.0
        for episode in draw_seeds(episodes, seed, generation, Purpose.POPULATION_EPISODES):
            seen, over = env.reset(seed=episode % 2**31)[0], False
            while not over:
                seen, reward, terminated, truncated, _ = env.step(int(np.argmax(network.activate(seen.tolist()))))
                total, over = total + float(reward), terminated or truncated
        return total / episodes

    return play


def _ini(population: int, fitness: float, inputs: int, outputs: int) -> str:
    """Return the settings of neat-python's example of XOR for a task."""
    sections: dict[str, dict[str, object]] = {
        "NEAT": {
            "fitness_criterion": "max",
            "fitness_threshold": fitness,
            "pop_size": population,
            "reset_on_extinction": False,
            "no_fitness_termination": False,
        },
        "DefaultGenome": {
            **dict.fromkeys(("activation_default", "activation_options"), "sigmoid"),
            **dict.fromkeys(("aggregation_default", "aggregation_options"), "sum"),
            **dict.fromkeys(("activation_mutate_rate", "aggregation_mutate_rate"), 0.0),
            **_values("bias", stdev=1.0, power=0.5, rate=0.7, replace=0.1),
            **_values("weight", stdev=1.0, power=0.5, rate=0.8, replace=0.1),
            **_values("response", stdev=0.0, power=0.0, rate=0.0, replace=0.0),
            "response_init_mean": 1.0,
            "compatibility_disjoint_coefficient": 1.0,
            "compatibility_weight_coefficient": 0.5,
            **dict.fromkeys(("conn_add_prob", "conn_delete_prob"), 0.5),
            **dict.fromkeys(("node_add_prob", "node_delete_prob"), 0.2),
            **{"enabled_default": True, "enabled_mutate_rate": 0.01},
            **dict.fromkeys(("enabled_rate_to_true_add", "enabled_rate_to_false_add"), 0.0),
            **{"feed_forward": True, "initial_connection": "full"},
            **{"single_structural_mutation": False, "structural_mutation_surer": "default"},
            **{"num_hidden": 0, "num_inputs": inputs, "num_outputs": outputs},
        },
        "DefaultSpeciesSet": {"compatibility_threshold": 3.0},
        "DefaultStagnation": {"species_fitness_func": "max", "max_stagnation": 20, "species_elitism": 2},
        "DefaultReproduction": {"elitism": 2, "survival_threshold": 0.2, "min_species_size": 2},
    }
    return "\n".join(
        line
        for section, values in sections.items()
        for line in (f"[{section}]", *(f"{name} = {value}" for name, value in values.items()))
    )


def _values(what: str, stdev: float, power: float, rate: float, replace: float) -> dict[str, object]:
    return {
        f"{what}_init_mean": 0.0,
        f"{what}_init_stdev": stdev,
        f"{what}_init_type": "gaussian",
        f"{what}_max_value": 30.0,
        f"{what}_min_value": -30.0,
        f"{what}_mutate_power": power,
        f"{what}_mutate_rate": rate,
        f"{what}_replace_rate": replace,
    }


def main() -> None:
    """Print the quartiles of both on each task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--generations", type=int, default=200, help="maximal number of generations")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    arguments = parser.parse_args()
    for task in arguments.tasks:
        print(f"{task}: genomes until it is solved, population {TASKS[task][1]}, {arguments.seeds} seeds")
        counts: dict[str, list[int]] = {"neuroevo": [], "neat-python": []}
        seconds = dict.fromkeys(counts, 0.0)
        for seed in range(arguments.seeds):
            for name, evolve in (("neuroevo", ours), ("neat-python", theirs)):
                begun = time.perf_counter()
                counts[name].append(evolve(task, seed, arguments.generations))
                seconds[name] += time.perf_counter() - begun
        for name, each in counts.items():
            low, median, high = np.percentile(each, [25, 50, 75])
            limit = TASKS[task][1] * arguments.generations
            unsolved = sum(count >= limit for count in each)
            print(
                f"  {name:12} median {median:7.0f}  quartiles {low:7.0f} {high:7.0f}  "
                f"unsolved {unsolved}  {seconds[name]:6.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
