"""Improvement of runs: the initial network and the last elite of each run on the same held-out episodes.

    python -m experiments.start_and_end runs/es_virtual_bn/*/*/*/

It requires an algorithm with an elite from the start, such as evolution strategies with their center.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from neuroevo.analysis.evaluation import Evaluation, episode_seeds, evaluate
from neuroevo.runs.reader import Elite, RunReader
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.sessions.warm_start import first_state


def compare(path: Path, episodes: int, max_episode_steps: int) -> tuple[RunReader, int, Evaluation, Evaluation]:
    """Return the run, its number of generations, and the evaluations of its start and of its last elite."""
    reader = RunReader(path)
    generation, last = reader.elite()
    start = Elite(reader.config.algorithm.elite(first_state(reader.config)[0].algorithm))
    seeds = episode_seeds(episodes)
    with make_evaluator(reader.config, reader.reference_batch()) as evaluator:
        return reader, generation + 1, *(evaluate(evaluator, each, seeds, max_episode_steps) for each in (start, last))


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("--episodes", type=int, default=30, help="held-out episodes of each network")
    parser.add_argument("--max-episode-steps", type=int, default=5000, help="steps after which an episode is cut off")
    options = parser.parse_args()
    print("| environment | seed | generations | start | last | gain |")
    print("|---|---|---|---|---|---|")
    better = 0
    for path in options.runs:
        reader, generations, start, last = compare(path, options.episodes, options.max_episode_steps)
        gain = last.summary.mean - start.summary.mean
        better += gain > 0
        cells = (f"{each.summary.mean:,.1f} ± {each.summary.standard_error:,.1f}" for each in (start, last))
        config = reader.config
        print(f"| {config.env.name} | {config.training.seed} | {generations} | {' | '.join(cells)} | {gain:+,.1f} |")
    print(f"\n{better} of {len(options.runs)} are better than their start; means and standard errors.")


if __name__ == "__main__":
    main()
