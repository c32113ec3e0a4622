"""Time of a recorded generation of a GA, with shared plays and with every episode played.

    python -m experiments.benchmarks.replayed_generation RUN [GENERATION] [TEST_EPISODES]

Plays the population, the validation of its fittest members and the tests of the elite of a run, by default of its last
generation, and checks the fitness against the recorded one. The seeds, and so all outcomes, are those of the run.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.selection import pick_candidates
from neuroevo.core.episode import Episode
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.phase import population_seeds, validation_seeds


def main() -> None:
    folder = Path(sys.argv[1])
    reader, members = RunReader(folder), MembersReader(folder)
    config, training = reader.config, reader.config.training
    generation = reader.finished(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    tests = int(sys.argv[3]) if len(sys.argv) > 3 else training.test_episodes
    population, recorded = members.genomes(generation), members.read(generation).fitness
    before = reader.elite(generation - 1)[1].genome if generation else None
    candidates = pick_candidates(population, recorded, config.algorithm.validation_candidates, before)
    limit = reader.rows(fitness=False)[generation]["max_episode_steps"]
    seeds = population_seeds(training, generation, len(population))
    episodes = [Episode(genome, seed, limit) for genome, own in zip(population, seeds, strict=True) for seed in own]
    validation = [
        Episode(genome, seed, limit)
        for genome, own in zip(candidates, validation_seeds(training, generation, len(candidates)), strict=True)
        for seed in own
    ]
    elite = reader.elite(generation)[1].genome
    test = [Episode(elite, seed) for seed in draw_seeds(tests, training.seed, generation, Purpose.TEST_EPISODES)]
    outcomes: dict[str, list[float]] = {}
    for shares in (True, False):
        if not shares:
            type(config.environment).starts = lambda *_: None  # type: ignore[method-assign]
        with make_evaluator(config, reader.reference_batch()) as evaluator:
            found: dict[str, Any] = {"shared plays": shares, "generation": generation}
            for phase, played in (("population", episodes), ("validation", validation), ("test", test)):
                steps, begun = evaluator.work().steps, time.perf_counter()
                returns = evaluator.evaluate(played).returns
                found[phase] = {
                    "episodes": len(played),
                    "steps": evaluator.work().steps - steps,
                    "seconds": round(time.perf_counter() - begun, 1),
                }
                if outcomes.setdefault(phase, returns.tolist()) != returns.tolist():
                    raise SystemExit(f"the returns of {phase} depend on whether plays are shared")
        fitness = np.reshape(outcomes["population"], (len(population), -1)).mean(axis=1)
        if fitness.tolist() != recorded.tolist():
            raise SystemExit("the population's fitness differs from the recorded fitness")
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
