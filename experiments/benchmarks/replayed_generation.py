"""Time of a recorded generation of a GA, with shared plays and with every episode played by itself.

    python -m experiments.benchmarks.replayed_generation RUN [--generation 134] [--test-episodes 200]

Plays the population, the validation of the candidates and the tests of the elite again; the last two also with every
episode by itself. The seeds, and so all outcomes, are those of the run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.algorithms.selection import pick_candidates
from neuroevo.core.episode import Batch, Episode, Outcomes
from neuroevo.core.randomness import Purpose, draw_seeds
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.phase import play_phase, population_seeds, validation_seeds


class Apart:
    """Evaluator that submits each episode by itself, so that none follows another one.

    Args:
        evaluator: The evaluator that plays the episodes.
    """

    def __init__(self, evaluator: LocalEvaluator):
        self._evaluator, self.work = evaluator, evaluator.work

    def submit(self, episodes: Sequence[Episode], priority: int = 0) -> list[Batch]:
        """Queue the episodes and return their batches."""
        genomes = dict.fromkeys(each.genome for each in episodes)  # cached, as they are made once for a single batch
        return [self._evaluator.submit([each], priority, parents=genomes) for each in episodes]

    def wait(self, batches: Sequence[Batch], on_progress: object = None) -> Outcomes:
        """Return the outcomes of all batches."""
        every = [self._evaluator.wait(batch) for batch in batches]
        names = ["returns", "steps", *(["behaviors"] if every[0].behaviors is not None else [])]
        joined = {name: np.concatenate([getattr(each, name) for each in every]) for name in names}
        return Outcomes(**joined, failures={n: each.failures[0] for n, each in enumerate(every) if each.failures})


def replay(folder: Path, generation: int | None = None, test_episodes: int | None = None) -> list[dict[str, Any]]:
    """Play a generation of a GA's run twice.

    Args:
        folder: The run's folder.
        generation: The generation; None for the last one.
        test_episodes: Number of test episodes of its elite; None for the run's own number.

    Returns:
        With shared plays, then without: the episodes, the steps that were played, and the seconds of each phase.

    Raises:
        UserError: There is no such run or generation.
        ValueError: A return depends on whether plays are shared, or the population's fitness is not the recorded one.
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
    found, returns = [], {}
    for shares in (True, False):
        row: dict[str, Any] = {"shared plays": shares, "generation": generation}
        with make_evaluator(config, reader.reference_batch()) as evaluator:
            for phase, requested in list(phases.items())[0 if shares else 1 :]:  # a member has few episodes
                steps = evaluator.work().steps
                outcomes, record = play_phase(evaluator if shares else Apart(evaluator), *requested)
                if not np.array_equal(returns.setdefault(phase, outcomes.returns), outcomes.returns):
                    raise ValueError(f"the returns of {phase} depend on whether plays are shared")
                played = evaluator.work().steps - steps
                row[phase] = {"episodes": record.episodes, "steps": played, "seconds": round(record.seconds, 1)}
        found.append(row)
    if not np.array_equal(returns["population"].reshape(len(population), -1).mean(axis=1), recorded):
        raise ValueError(f"the fitness of generation {generation} differs from the recorded fitness")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a GA's run")
    parser.add_argument("--generation", type=int, help="by default the last one")
    parser.add_argument("--test-episodes", type=int, help="by default as many as the run's")
    given = parser.parse_args()
    for row in replay(given.run, given.generation, given.test_episodes):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
