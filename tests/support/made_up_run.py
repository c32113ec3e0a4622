"""A run that nobody played, as large as one likes: dots that wander through the hard maze, with parents and metrics.

python -m tests.support.made_up_run DIR GENERATIONS MEMBERS
"""

import json
import sys
from pathlib import Path

import numpy as np

from neuroevo.config.load import load_config
from neuroevo.core.genome import Genome
from neuroevo.runs.genome_json import genome_to_json
from neuroevo.runs.json_lines import sealed
from neuroevo.runs.members_format import IS_SEED, Record, pack
from neuroevo.training.record import COLUMNS

START, GOAL, PARENTS = (36, 184), (31, 20), 20


def made_up_run(path, generations, members):
    """Writes the files that a page reads."""
    path.mkdir(parents=True)
    (path / "config.toml").write_text(load_config("hard_maze_ns", [f"algorithm.population={members}"]).toml())
    (path / "info.json").write_text(json.dumps({"command": "made up", "resumed": []}))
    rng = np.random.default_rng(0)
    ends, best = np.tile(START, (members, 1)), np.zeros(PARENTS, int)
    files = {name: (path / name).open("wb") for name in ("metrics.jsonl", "elites.jsonl", "members.bin")}
    for generation in range(generations):
        of = best[rng.integers(0, PARENTS, members)]
        ends = np.clip(ends[of] + rng.normal(0, 6, (members, 2)), (5, 5), (198, 200))
        fitness = -np.hypot(*(ends - GOAL).T)
        best = np.argsort(-fitness + rng.normal(0, 20, members))[:PARENTS]
        files["members.bin"].write(pack(_record(generation, of, ends, fitness, rng)))
        files["metrics.jsonl"].write(sealed(_row(generation, fitness)))
        files["elites.jsonl"].write(sealed({"generation": generation, "elite": genome_to_json(Genome(5))}))
    for file in files.values():
        file.close()


def _record(generation, of, ends, fitness, rng):
    members = len(of)
    where = np.full(members, generation - 1) if generation else np.full(members, IS_SEED)
    return Record(
        generation=generation,
        parents=np.stack([where, of], axis=1).astype(np.int32),
        seeds=rng.integers(0, 2**62, members),
        scales=np.full(members, 0.1 if generation else 0.0, np.float32),
        kinds=np.zeros(members, np.int8),
        fitness=fitness,
        steps=rng.integers(100, 400, members),
        behaviors=ends.astype(np.float32),
    )


def _row(generation, fitness):
    played = (generation + 1) * len(fitness) * 400
    row = dict.fromkeys(COLUMNS, 0) | {"generation": generation, "max_episode_steps": 400}
    for name in ("mean", "median", "max", "min", "std"):
        row[f"fitness_{name}"] = float(getattr(np, name)(fitness))
    row |= {"validation_mean": row["fitness_max"], "test_mean": row["fitness_max"], "test_standard_error": 1.0}
    totals = {"steps_total": played, "frames_total": played, "seconds_total": 2.0 * generation}
    return row | totals | {"fitness": fitness.tolist()}


if __name__ == "__main__":
    made_up_run(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
