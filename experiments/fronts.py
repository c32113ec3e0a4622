"""Print the networks of a sweep's elites, and the Pareto fronts of return and multiply-adds.

    python -m experiments.fronts runs/architectures

Elites play 30 held-out episodes; a front has the fitness of single episodes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from neuroevo.analysis.run import open_run
from neuroevo.networks.grafting import cost
from neuroevo.rollout.evaluator import LocalEvaluator
from neuroevo.runs.paths import is_run
from neuroevo.runs.reader import RunReader


def main(folder: Path) -> None:
    """Print a table of all runs in a folder."""
    print(f"{'run':36} {'return':>16} {'weights':>10} {'multiply-adds':>14}  network")
    for path in sorted(each.parent for each in folder.rglob("run.db") if is_run(each.parent)):
        reader = RunReader(path)
        config, (_, elite) = reader.config, reader.elite()
        with LocalEvaluator(config.environment, config.network) as evaluator:
            text = evaluator.weights.text(elite.genome.network)
        result = open_run(path).evaluate(episodes=30)
        price = cost(text)
        score = f"{result.mean:.1f} +- {result.standard_error:.1f}"
        print(f"{str(path.relative_to(folder)):36} {score:>16} {price.weights:>10,} {price.multiply_adds:>14,}  {text}")
        state = reader.state().algorithm
        for genome, fitness in zip(getattr(state, "front", ()), getattr(state, "front_fitness", ()), strict=True):
            price = cost(genome.network)
            print(f"{'  front':36} {fitness:>16.1f} {price.weights:>10,} {price.multiply_adds:>14,}  {genome.network}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
