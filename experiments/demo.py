"""What `make run` does: the GA on Frostbite, random search with as many steps, and a comparison on held-out episodes.

    python -m experiments.demo [--seed S] [--out DIR] [--set KEY=VALUE ...]

The comparison plays generation 0's elite, the GA's last elite and random search's elite on the same episode seeds,
which training did not draw, cut off after 5,000 steps (a network that never starts the game would play on for
100,000). It goes to standard output and to DIR/comparison.json.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from neuroevo.cli.common import Debug, reported_errors
from neuroevo.cli.progress import make_progress
from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import Config
from neuroevo.core.episode import Episode
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.randomness import held_out_seeds
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.genome_json import genome_to_json
from neuroevo.runs.metrics_files import Elite
from neuroevo.runs.new_folder import check_free, default_path
from neuroevo.runs.training_run import make_evaluator, run
from neuroevo.system.statistics import summarize
from neuroevo.training.loop import TrainState, spent
from neuroevo.training.record import Record

CONFIG = Path(__file__).parents[1] / "neuroevo/config/presets/frostbite_demo.toml"
HELD_OUT_EPISODES = 30
HELD_OUT_MAX_STEPS = 5000  # steps


def demo(
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the runs [default: the configuration's].")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for both runs [default: runs/demo-TIME].")] = None,
    config: Annotated[Path, typer.Option(help="Configuration of the GA.")] = CONFIG,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key.")] = None,
    debug: Debug = False,
) -> None:
    """Evolve on Frostbite for some minutes and compare with random search."""
    with reported_errors(debug):
        changes = list(overrides or ()) + ([] if seed is None else [f"training.seed={seed}"])
        ga = load_config(config, changes)
        folder = out or default_path("demo")
        for name in ("ga", "random_search"):
            check_free(folder / name)
        evaluator = make_evaluator(ga)
        try:
            compare(ga, evaluator, folder)
        finally:
            evaluator.close()


def compare(ga: Config, evaluator: Evaluator, folder: Path) -> dict[str, Any]:
    """Trains both, plays the held-out episodes, prints and returns the comparison."""
    began = time.perf_counter()
    elites: list[Elite] = []
    _heading(f"Genetic algorithm on {ga.env.name}, {ga.network.name}, seed {ga.training.seed}")
    state = _train(ga, evaluator, folder / "ga", elites)
    first, last = elites[0], elites[-1]

    search = random_search_beside(ga, state.steps)
    _heading(f"Random search with as many steps, {state.steps:,}")
    _train(search, evaluator, folder / "random_search", elites)

    _heading(f"The same {HELD_OUT_EPISODES} held-out episodes for each")
    names = {"GA, generation 0's elite": first, "GA, last elite": last, "random search's elite": elites[-1]}
    returns = play_held_out(evaluator, list(names.values()))
    rows = {name: own for name, own in zip(names, returns, strict=True)}
    print(table(rows))
    print(verdict(rows))
    result = {
        "seed": ga.training.seed,
        "steps": state.steps,
        "generations": state.generation,
        "seconds": round(time.perf_counter() - began, 1),
        "returns": {name: own.tolist() for name, own in rows.items()},
        "elites": {name: genome_to_json(elite.genome) for name, elite in names.items()},
    }
    (folder / "comparison.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(f"{result['seconds']:.0f} s in all; everything is in {folder}")
    return result


def random_search_beside(ga: Config, steps: int) -> Config:
    """Random search with the GA's environment, network, population and episodes, and a budget of `steps`."""
    tables = ga.tables()
    own = {key: value for key, value in tables["algorithm"].items() if key in ("population", "validation_candidates")}
    training = {key: value for key, value in tables["training"].items() if key != "generations"}
    return make_config(
        {**tables, "algorithm": {"name": "random_search", **own}, "training": {**training, "total_steps": steps}}
    )


def play_held_out(evaluator: Evaluator, elites: list[Elite]) -> np.ndarray:
    """Returns of the held-out episodes, float64 [elites, HELD_OUT_EPISODES], cut off after HELD_OUT_MAX_STEPS steps."""
    seeds = held_out_seeds(HELD_OUT_EPISODES)
    outcomes = evaluator.evaluate(
        [Episode(elite.genome, seed, HELD_OUT_MAX_STEPS, elite.normalizer) for elite in elites for seed in seeds]
    )
    return np.asarray(outcomes.returns, np.float64).reshape(len(elites), len(seeds))


def table(rows: Mapping[str, np.ndarray]) -> str:
    """Mean, standard error and range of each row's returns, float64 [episodes], as text."""
    lines = [f"{'':26}{'mean':>10}{'std. error':>12}{'lowest':>10}{'highest':>10}"]
    for name, returns in rows.items():
        of = summarize(returns)
        lines.append(f"{name:26}{of.mean:10,.1f}{of.standard_error:12,.1f}{returns.min():10,.0f}{returns.max():10,.0f}")
    return "\n".join(lines)


def verdict(rows: Mapping[str, np.ndarray]) -> str:
    """Which row won, and by how much, as a sentence; rows are returns on the same episodes."""
    ranked = sorted(rows, key=lambda name: -rows[name].mean())
    winner, others = ranked[0], ranked[1:]
    if rows[winner].mean() == rows[others[0]].mean():
        return f"A draw: {winner} and {others[0]} have the same mean."
    margins = []
    for other in others:
        margin = summarize(rows[winner] - rows[other])
        margins.append(f"{other} by {margin.mean:,.1f} ± {margin.standard_error:,.1f}")
    return f"{winner} won: it beat {' and '.join(margins)} points an episode (mean ± standard error)."


def _train(config: Config, evaluator: Evaluator, folder: Path, elites: list[Elite]) -> TrainState:
    """Trains into `folder`, adds each generation's elite to `elites` and returns the last state."""

    def add(record: Record) -> None:
        elites.append(Elite(record.elite, record.normalizer))

    with RunFolder.create(folder, config).open(sys.argv) as run_folder, make_progress() as progress:
        state = run(config, evaluator, run_folder, [progress, add])
    print(f"finished {spent(state, config.training)}", flush=True)
    return state


def _heading(text: str) -> None:
    print(f"\n{text}\n", flush=True)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(demo)
    app()
