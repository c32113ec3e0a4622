"""Print coverage and QD-score of runs over the behaviors of all members, and render champions of cells.

    python -m experiments.cells runs/walker_contacts --csv cells.csv
    python -m experiments.cells runs/walker_contacts/map_elites --video cells.gif

The champion of a cell is the fittest of all members that were in it, even if the algorithm did not keep it. The video
shows three champions of the run with the highest QD-score: the fittest with a clearly larger first measure, the fittest
with a clearly larger second measure, and the fittest with about equal measures. Their weights have to be stored or, as
for genomes from seeds, reproducible.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import neuroevo
from neuroevo.analysis.behavior_maps import BehaviorMap, behavior_map
from neuroevo.analysis.rendering import Agent, render
from neuroevo.core.tree import centers_of
from neuroevo.runs.members import MembersReader
from neuroevo.runs.paths import is_run
from neuroevo.runs.reader import RunReader


def qd_score(cells: BehaviorMap) -> float:
    """Return the sum of the champions' fitness."""
    return float(np.nansum(cells.fitness))


def champions(reader: RunReader, cells: BehaviorMap) -> list[Agent]:
    """Return three champions that behave differently."""
    fitness, last = cells.fitness, {tuple(cell): number for number, cell in enumerate(cells.cells)}
    x, y = np.indices(fitness.shape)
    side = fitness.shape[0] // 4
    agents = []
    for where in (x - y >= side, y - x >= side, abs(x - y) <= 1):
        best = np.unravel_index(np.nanargmax(np.where(where, fitness, np.nan)), fitness.shape)
        generation, index = cells.members[last[tuple(int(each) for each in best)]]
        members = MembersReader(reader.path)
        genome = members.genomes(int(generation))[int(index)]
        if not all(center.has_weights for center in centers_of([genome]).values()):
            raise SystemExit(f"the weights of the champions of {reader.path} are not kept, expected a run of seeds")
        agents.append(Agent(f"cell {best[0]}, {best[1]}", genome, reader.normalizer(int(generation))))
    return agents


def main() -> None:
    """Print a line for each run, and render the video."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--video", type=Path)
    parser.add_argument("--steps", type=int, default=250, help="length of the video in steps")
    parsed = parser.parse_args()
    best: tuple[float, RunReader, BehaviorMap] | None = None
    print(f"{'run':44} {'evaluations':>11} {'coverage':>8} {'QD-score':>9} {'best':>7}")
    rows = [("run", "evaluations", "coverage", "qd_score", "best")]
    for path in sorted(each.parent for each in parsed.folder.rglob("run.db") if is_run(each.parent)):
        reader = neuroevo.open_run(path, trust=True)
        cells = behavior_map(reader)
        score = qd_score(cells)
        played = sum(len(each) for each in MembersReader(path).each() if each is not None)
        name = str(path.relative_to(parsed.folder))
        highest = float(np.nanmax(cells.fitness))
        print(f"{name:44} {played:>11,} {cells.coverage:>8.1%} {score:>9,.0f} {highest:>7,.0f}")
        rows.append((name, f"{played}", f"{cells.coverage:.4f}", f"{score:.1f}", f"{highest:.1f}"))
        if best is None or score > best[0]:
            best = score, reader, cells
    if parsed.csv is not None:
        with parsed.csv.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    if best is not None and parsed.video is not None:
        _, reader, cells = best
        agents = champions(reader, cells)
        found = render(
            reader.config, agents, [0], parsed.video, max_episode_steps=parsed.steps, scale=1, fps=20, captions=True
        )
        for agent, result in zip(agents, found.outcomes[0].returns, strict=True):
            print(f"{reader.path.name}: {agent.name}, return {result:,.0f} in {parsed.steps} steps")


if __name__ == "__main__":
    main()
