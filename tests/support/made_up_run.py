"""Synthetic run of any size: random walks through the hard maze, with parents and metrics.

python -m tests.support.made_up_run DIR GENERATIONS MEMBERS
"""

import sys
from pathlib import Path

import numpy as np

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.config.load import load_config
from neuroevo.core.genome import Genome
from neuroevo.runs.about import About, write_about
from neuroevo.runs.generation_rows import write_generation
from neuroevo.runs.genome_rows import GenomeWriter
from neuroevo.runs.members import write_members
from neuroevo.runs.writer import new_database
from neuroevo.training.record import EvaluationRecord, GenerationRecord, PhaseRecord

START, GOAL, PARENTS = (36, 184), (31, 20), 20


def made_up_run(path, generations, members):
    """Write the files that the inspector reads."""
    path.mkdir(parents=True)
    config = load_config("hard_maze_ns", [f"algorithm.population={members}"])
    (path / "config.toml").write_text(config.toml())

    def fill(database):
        write_about(database, About(config.toml(), config.origin(), {"command": "made up", "versions": {}}))
        genomes = GenomeWriter(database)
        rng = np.random.default_rng(0)
        ends, best, before = np.tile(START, (members, 1)), np.zeros(PARENTS, int), []
        for generation in range(generations):
            of = best[rng.integers(0, PARENTS, members)]
            ends = np.clip(ends[of] + rng.normal(0, 6, (members, 2)), (5, 5), (198, 200))
            fitness = -np.hypot(*(ends - GOAL).T)
            best = np.argsort(-fitness + rng.normal(0, 20, members))[:PARENTS]
            seeds = rng.integers(0, 2**62, members).tolist()
            new = [before[i].child(seed, 0.1) if before else Genome(seed) for i, seed in zip(of, seeds, strict=True)]
            write_generation(database, _record(generation, new[0], fitness), genomes)
            played = EvaluatedPopulation(new, fitness, 0, ends.astype(np.float64))
            write_members(database, generation, played, rng.integers(100, 400, members), None, genomes, True)
            genomes.keep(new)
            before = new

    new_database(path, fill)


def _record(generation, elite, fitness):
    played = (generation + 1) * len(fitness) * 400
    phase = PhaseRecord(episodes=len(fitness), steps=played, seconds=1.0)
    return GenerationRecord(
        generation=generation,
        max_episode_steps=400,
        elite=elite,
        fitness=fitness,
        validation_mean=float(fitness.max()),
        population=phase,
        validation=phase,
        steps_total=played,
        frames_total=played,
        seconds_total=2.0 * generation,
        steps_per_s=1000.0,
        idle_share=0.1,
    ).evaluated(EvaluationRecord(episodes=2, steps=9, seconds=0.1, mean=float(fitness.max()), standard_error=1.0))


if __name__ == "__main__":
    made_up_run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
