"""Where all episodes of runs in a maze ended: a picture, and which share of the maze that is.

    python -m experiments.maze_ends runs/hard_maze_ns_es/*/*/seed-0 --out ends.png

Of runs that keep their members' behaviors: logging.members_megabytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader

SQUARE = 10.0  # side of what counts as reached if an episode ended there, in the maze's units, of some 200 across
MOST_DOTS = 10_000


def ends(path: Path) -> np.ndarray:
    """Of all members whose behavior a run keeps, oldest first, [N, 2]."""
    members = MembersReader(path).each()
    found = [each.behaviors for each in members if each is not None and each.behaviors is not None]
    positions = np.concatenate([np.zeros((0, 2)), *found])
    return positions[np.isfinite(positions).all(axis=1)]


def reached(positions: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """The share of the squares of a maze between two corners in which some episode ended."""
    count = np.ceil((high - low) / SQUARE).astype(int)
    squares = np.clip(((positions - low) // SQUARE).astype(int), 0, count - 1)
    return len(np.unique(squares, axis=0)) / count.prod()


def main() -> None:
    """Draws a panel for each run, and prints a line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--out", type=Path, help="the picture to write; none is written if it is not given")
    options = parser.parse_args()
    figure = Figure(figsize=(3.2 * len(options.runs), 3.5), layout="constrained")
    panels = figure.subplots(1, len(options.runs), sharex=True, sharey=True, squeeze=False)[0]
    for axes, path in zip(panels, options.runs, strict=True):
        config = RunReader(path).config
        plan = config.environment.walls
        if plan is None:
            parser.error(f"{path} is a run on {config.env.name}, expected one in a maze")
        corners = np.array(plan["walls"]).reshape(-1, 2)
        positions = ends(path)
        if not len(positions):
            parser.error(f"{path} has no member whose behavior was kept, expected one with logging.members_megabytes")
        share = reached(positions, corners.min(axis=0), corners.max(axis=0))
        name = f"{config.algorithm_name}, seed {config.training.seed}"
        print(f"{path}: {name}: {len(positions):,} episodes, {share:.0%} of the maze", flush=True)
        for x0, y0, x1, y1 in plan["walls"]:
            axes.plot([x0, x1], [y0, y1], color="black", linewidth=1)
        shown = np.linspace(0, len(positions) - 1, min(len(positions), MOST_DOTS)).astype(int)
        axes.scatter(*positions[shown].T, c=shown, s=3, cmap="viridis", alpha=0.5, linewidths=0, rasterized=True)
        axes.plot(*plan["goal"], marker="*", markersize=12, color="tab:red")
        axes.set(title=f"{name}: {share:.0%}", aspect="equal", xticks=[], yticks=[])
    panels[0].invert_yaxis()
    if options.out:
        figure.savefig(options.out, dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
