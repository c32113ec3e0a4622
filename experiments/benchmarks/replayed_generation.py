"""Time of a recorded generation of a GA, and the steps that its episodes share.

    python -m experiments.benchmarks.replayed_generation RUN [--generation 134] [--test-episodes 200]

Plays the population, the validation of the candidates and the tests of the elite again, one after another. The seeds,
and so all outcomes, are those of the run.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.selection import pick_candidates
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.phase import play_phase, population_seeds, validation_seeds


def replay(folder: Path, generation: int | None = None, test_episodes: int | None = None) -> dict[str, Any]:
    """Play a generation of a GA's run again.

    Args:
        folder: The run's folder.
        generation: The generation; None for the last one.
        test_episodes: Number of test episodes of its elite; None for the run's own number.

    Returns:
        The generation, and of each phase its episodes, their steps, the steps that were played, and the seconds.

    Raises:
        UserError: There is no such run or generation.
        ValueError: The population's fitness is not the recorded one.
    """
    reader, members = RunReader(folder), MembersReader(folder)
    config, training = reader.config, reader.config.training
    generation = reader.finished(generation)
    tests = training.test_episodes if test_episodes is None else test_episodes
    population, recorded = members.genomes(generation), members.read(generation).fitness
    before = reader.elite(generation - 1)[1].genome if generation else None
    candidates = pick_candidates(population, recorded, config.algorithm.validation_candidates, before)
    limit = reader.rows(fitness=False)[generation]["max_episode_steps"]
    test_seeds = draw_seeds(tests, training.seed, generation, Purpose.TEST_EPISODES)
    phases = {
        "population": (population, population_seeds(training, generation, len(population)), limit),
        "validation": (candidates, validation_seeds(training, generation, len(candidates)), limit),
        "test": ([reader.elite(generation)[1].genome], [test_seeds], 0),
    }
    found: dict[str, Any] = {"generation": generation}
    with make_evaluator(config, reader.reference_batch()) as evaluator:
        for phase, requested in phases.items():
            steps = evaluator.work().steps
            outcomes, record = play_phase(evaluator, *requested)
            found[phase] = {
                "episodes": record.episodes,
                "steps": int(outcomes.steps.sum()),
                "played": evaluator.work().steps - steps,
                "seconds": round(record.seconds, 1),
            }
            if phase == "population":
                fitness = outcomes.returns.reshape(len(population), -1).mean(axis=1)
                if not np.array_equal(fitness, recorded):
                    raise ValueError(f"the fitness of generation {generation} differs from the recorded fitness")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a GA's run")
    parser.add_argument("--generation", type=int, help="by default the last one")
    parser.add_argument("--test-episodes", type=int, help="by default as many as the run's")
    given = parser.parse_args()
    print(json.dumps(replay(given.run, given.generation, given.test_episodes)))


if __name__ == "__main__":
    main()
