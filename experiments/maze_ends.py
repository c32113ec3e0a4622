"""Plot the final positions of all episodes of maze runs, and print the share of the maze that they cover.

    python -m experiments.maze_ends runs/hard_maze_ns_es/*/*/seed-0 --out ends.png

The runs have to store their members' behaviors: logging.members_megabytes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader

SQUARE = 10.0  # side of the squares that count as reached, in units of the maze, which is some 200 units wide
MOST_DOTS = 10_000


def ends(path: Path) -> np.ndarray:
    """Return the final positions of all members with a stored behavior, oldest first, [N, 2]."""
    members = MembersReader(path).each()
    found = [each.behaviors for each in members if each is not None and each.behaviors is not None]
    positions = np.concatenate([np.zeros((0, 2)), *found])
    return positions[np.isfinite(positions).all(axis=1)]


def reached(positions: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Return the share of the squares of a maze between two corners in which some episode ended."""
    count = np.ceil((high - low) / SQUARE).astype(int)
    squares = np.clip(((positions - low) // SQUARE).astype(int), 0, count - 1)
    return len(np.unique(squares, axis=0)) / count.prod()


def main() -> None:
    """Draw a panel and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--out", type=Path, help="the image to write; by default no image is written")
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
            parser.error(f"{path} has no stored behaviors, expected a run with logging.members_megabytes")
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
