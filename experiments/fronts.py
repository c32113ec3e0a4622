"""Print the networks of a sweep's elites, and the Pareto fronts of fitness and multiply-adds.

    python -m experiments.fronts runs/architectures

Elites play 30 held-out episodes; the fitness of members of a front is that of their episodes in the run.
"""

from __future__ import annotations

import sys
from pathlib import Path

import neuroevo
from neuroevo.analysis.replay import Replay
from neuroevo.networks.grafting import cost
from neuroevo.runs.paths import is_run


def main(folder: Path) -> None:
    """Print a table of all runs in a folder."""
    print(f"{'run':28} {'return':>14} {'weights':>9} {'multiply-adds':>13}  network")
    for path in sorted(each.parent for each in folder.rglob("run.db") if is_run(each.parent)):
        reader = neuroevo.open_run(path, trust=True)
        network = Replay(reader.config, [reader.elite()[1].genome]).network
        result = neuroevo.evaluate(path, trust=True).summary
        line(str(path.relative_to(folder)), f"{result.mean:.1f} +- {result.standard_error:.1f}", network)
        state = reader.state().algorithm
        for genome, fitness in zip(getattr(state, "front", ()), getattr(state, "front_fitness", ()), strict=True):
            line("  front", f"{fitness:.1f}", genome.network)


def line(name: str, score: str, network: str) -> None:
    """Print a row of the table."""
    price = cost(network)
    print(f"{name:28} {score:>14} {price.weights:>9,} {price.multiply_adds:>13,}  {network.partition('; ')[2]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
