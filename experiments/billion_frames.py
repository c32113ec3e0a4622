"""Compare runs of the genetic algorithm with published results at 1 billion frames.

    python -m experiments.billion_frames runs/frostbite_seed0 ... --out experiments/results/billion_frames.png

It draws the curves of each run, with published scores as lines, and prints what the last elite reaches in 200 held-out
episodes without a cut-off, the generations whose elite was 100 points better than all elites before it, and the
different returns of the members with the best episodes and of the last elites.

Scores of the papers are those of their table for the genetic algorithm (Such et al. 2017, arXiv 1712.06567, 1 billion
frames) and for random search; a rerun is an independent run of the code of 2018, one for each seed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import neuroevo
from neuroevo.core.episode import Episode
from neuroevo.core.genome import Genome
from neuroevo.core.randomness import held_out_seeds
from neuroevo.runs.members import MembersReader
from neuroevo.sessions.evaluators import make_evaluator


@dataclass(frozen=True)
class Published:
    """Published returns on one game; None or empty if none is known."""

    ga: float
    random_search: float | None = None
    reruns: tuple[float, ...] = ()


PUBLISHED = {
    "frostbite": Published(4536, 1164, (4220, 5960)),
    "kangaroo": Published(3790),
    "venture": Published(969),
    "gravitar": Published(476, reruns=(756,)),
    "zaxxon": Published(6180),
}


def describe(run: neuroevo.Run) -> str:
    """Return the row of a run in the table of results."""
    rows, held_out = run.rows(fitness=False), run.evaluate(episodes=200)
    said, lengths = held_out.row(), held_out.outcomes.steps
    cells = [
        f"{run.config.env.name}, seed {run.config.training.seed}",
        f"{len(rows):,}",
        f"{rows[-1]['frames_total'] / 1e6:,.0f}M",
        f"{said['mean']:,.0f} ± {said['standard_error']:,.0f}",
        f"{said['median']:,.0f} ({said['min']:,.0f} to {said['max']:,.0f})",
        f"{said['different_returns']}",
        f"{lengths.mean():,.0f} ({lengths.min():,} to {lengths.max():,})",
        f"{PUBLISHED[run.config.env.name].ga:,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def jumps(run: neuroevo.Run, least: float = 100) -> list[str]:
    """Return a line for each generation whose elite's validation exceeds all earlier ones by `least`."""
    best, found = float("-inf"), []
    for row in run.rows(fitness=False):
        if row["validation_mean"] > best + least:
            frames = row["frames_total"] / 1e6
            found.append(f"generation {row['generation']}, {frames:,.0f}M frames: {row['validation_mean']:,.0f}")
        best = max(best, row["validation_mean"])
    return found


def different_returns(run: neuroevo.Run, members: int = 5, elites: int = 8) -> list[str]:
    """Return lines with the different returns in 30 held-out episodes.

    Args:
        run: The run.
        members: Number of generations, those with the best episodes of members, of which the best member is listed.
        elites: Number of the last different elites.
    """
    stored, rows = MembersReader(run.path), run.rows()
    best = [(max((fitness, index) for index, fitness in enumerate(row["fitness"])), row["generation"]) for row in rows]
    chosen: dict[Genome, str] = {}
    for (fitness, index), generation in sorted(best, reverse=True)[:members]:
        name = f"member {index} of generation {generation}, with {fitness:,.0f} in its episode"
        chosen[stored.genomes(generation)[index]] = name
    firsts: dict[Genome, str] = {}
    for row in rows:
        firsts.setdefault(run.elite(row["generation"])[1].genome, f"elite since generation {row['generation']}")
    chosen |= dict(list(firsts.items())[-elites:])
    seeds = held_out_seeds(30)
    with make_evaluator(run.config, run.reference_batch()) as evaluator:
        outcomes = evaluator.evaluate([Episode(genome, seed) for genome in chosen for seed in seeds])
    lines = []
    for name, returns in zip(chosen.values(), outcomes.returns.reshape(len(chosen), -1), strict=True):
        lines.append(
            f"{name}: mean {returns.mean():,.0f}; {', '.join(f'{each:,.0f}' for each in sorted(set(returns)))}"
        )
    return lines


def draw(runs: list[neuroevo.Run], out: Path) -> None:
    """Draw a panel for each run."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(len(runs), figsize=(10, 4 * len(runs)), squeeze=False, layout="constrained")
    for run, (panel,) in zip(runs, panels, strict=True):
        metrics, game = run.metrics, run.config.env.name
        frames, known = metrics["frames_total"] / 1e6, PUBLISHED[game]
        panel.plot(frames, metrics["validation_mean"], color="C0", label="elite, 30 validation episodes")
        panel.plot(frames, metrics["test_mean"], color="C0", alpha=0.4, linewidth=0.8, label="elite, 30 test episodes")
        panel.plot(frames, metrics["fitness_mean"], color="C1", label="population of 1,000, mean")
        panel.plot(frames, metrics["fitness_max"], ".", color="C1", markersize=2.5, label="population, best episode")
        panel.axhline(known.ga, color="black", linestyle="--", label=f"GA of the paper: {known.ga:,.0f}")
        if known.random_search is not None:
            text = f"random search of the paper: {known.random_search:,.0f}"
            panel.axhline(known.random_search, color="black", linestyle=":", label=text)
        for index, score in enumerate(known.reruns):
            text = f"reruns of the 2018 code: {', '.join(f'{each:,.0f}' for each in known.reruns)}"
            panel.plot([1000], [score], "k_", markersize=14, label=text if index == 0 else None)
        panel.set(title=f"{game}, seed {run.config.training.seed}", xlabel="frames (millions)", ylabel="return")
        panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(out, dpi=110)


def main() -> None:
    """Draw the figure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=neuroevo.open_run, metavar="RUN", help="a run's folder")
    parser.add_argument("--out", type=Path, required=True, help="the figure, a .png file")
    options = parser.parse_args()
    draw(options.runs, options.out)
    print("| run | generations | frames | mean return | median (range) | different returns | steps (range) | paper |")
    print("|---|---|---|---|---|---|---|---|")
    for run in options.runs:
        print(describe(run))
    for run in options.runs:
        print("", f"{run.path.name}:", *jumps(run), "", *different_returns(run), sep="\n")


if __name__ == "__main__":
    main()
