"""Demo (`make run`): train a GA on an Atari game for a few minutes and show the result.

    python -m experiments.demo [--seed S] [--out DIR] [--random-search] [--set KEY=VALUE ...]

The elites of the first and the last generation play the same held-out episodes with the step limit of training; with
--random-search also the elite of random search with the same number of steps, which doubles the time. The results are
printed and written to DIR/comparison.json, a learning curve to DIR/curve.png and a video of both elites to
DIR/elites.mp4.
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

from neuroevo.analysis.rendering import Agent, render
from neuroevo.analysis.run import Run as open_run
from neuroevo.cli.common import Debug, reported_errors
from neuroevo.config.load import load_config, make_config
from neuroevo.config.schema import Config
from neuroevo.core.episode import Episode
from neuroevo.core.evaluator import Evaluator
from neuroevo.core.genome import to_json
from neuroevo.core.randomness import held_out_seeds
from neuroevo.core.statistics import summarize
from neuroevo.runs.paths import check_free, default_path
from neuroevo.runs.reader import Elite
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.sessions.folder import RunFolder
from neuroevo.sessions.progress import make_progress
from neuroevo.sessions.training_run import run
from neuroevo.system.files import written_aside
from neuroevo.training.record import Record
from neuroevo.training.state import TrainState, spent

CONFIG = Path(__file__).parents[1] / "neuroevo/config/presets/demo.toml"
HELD_OUT_EPISODES = 30


def demo(
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the runs [default: the configuration's].")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for both runs [default: runs/demo-TIME].")] = None,
    config: Annotated[Path, typer.Option(help="Configuration of the GA.")] = CONFIG,
    random_search: Annotated[bool, typer.Option(help="Also run random search with as many steps.")] = False,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key.")] = None,
    debug: Debug = False,
) -> None:
    """Evolve a network for a few minutes, and show the result."""
    with reported_errors(debug):
        changes = list(overrides or ()) + ([] if seed is None else [f"training.seed={seed}"])
        ga = load_config(config, changes)
        folder = out or default_path("demo")
        for name in ("ga", "random_search"):
            check_free(folder / name)
        evaluator = make_evaluator(ga)
        try:
            compare(ga, evaluator, folder, random_search)
        finally:
            evaluator.close()
        show(folder)


def compare(ga: Config, evaluator: Evaluator, folder: Path, random_search: bool = False) -> dict[str, Any]:
    """Train, play the held-out episodes, and print and return the comparison."""
    began = time.perf_counter()
    elites: list[Elite] = []
    _heading(f"Genetic algorithm on {ga.env.name}, {ga.network.name}, seed {ga.training.seed}")
    state = _train(ga, evaluator, folder / "ga", elites)
    first, last = elites[0], elites[-1]

    names = {"GA, generation 0's elite": first, "GA, last elite": last}
    if random_search:
        search = random_search_beside(ga, state.steps)
        _heading(f"Random search with as many steps, {state.steps:,}")
        _train(search, evaluator, folder / "random_search", elites)
        names["random search's elite"] = elites[-1]

    cut_off = state.max_episode_steps
    _heading(f"The same {HELD_OUT_EPISODES} held-out episodes of at most {cut_off:,} steps for each")
    returns = play_held_out(evaluator, list(names.values()), cut_off)
    rows = {name: own for name, own in zip(names, returns, strict=True)}
    print(table(rows))
    print(verdict(rows))
    result = {
        "seed": ga.training.seed,
        "steps": state.steps,
        "generations": state.generation,
        "seconds": round(time.perf_counter() - began, 1),
        "returns": {name: own.tolist() for name, own in rows.items()},
        "elites": {name: to_json(elite.genome) for name, elite in names.items()},
    }
    (folder / "comparison.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return result


def show(folder: Path) -> None:
    """Draw the learning curve, make the video, and print the next steps."""
    run = open_run(folder / "ga")
    seconds = run.rows()[-1]["seconds_total"]
    run.plot().savefig(folder / "curve.png", dpi=150)
    generations = {"generation 0": 0, "the last one": len(run.rows()) - 1}
    elites = {name: run.elite(number)[1] for name, number in generations.items()}
    agents = [Agent(name, elite.genome, elite.normalizer) for name, elite in elites.items()]
    with written_aside(folder / "elites.mp4", force=True) as aside:
        render(run.config, agents, held_out_seeds(1), aside, max_episode_steps=run.rows()[-1]["max_episode_steps"])
    print(
        f"""
{seconds:,.0f} s of evolution. Results:
  {folder / "curve.png"}     fitness and validation, against frames
  {folder / "elites.mp4"}    the elites of the first and the last generation
To continue:
  .venv/bin/neuroevo train --resume {folder / "ga"} --set training.minutes={round(seconds / 60) + 10}
To start your own run:
  .venv/bin/neuroevo config show demo > mine.toml && .venv/bin/neuroevo train mine.toml --set env.name=pong"""
    )


def random_search_beside(ga: Config, steps: int) -> Config:
    """Return a random search with the GA's environment, network, population and episodes, and a budget of `steps`."""
    tables = ga.tables()
    own = {key: value for key, value in tables["algorithm"].items() if key in ("population", "validation_candidates")}
    training = {key: value for key, value in tables["training"].items() if key not in ("generations", "minutes")}
    return make_config(
        {**tables, "algorithm": {"name": "random_search", **own}, "training": {**training, "total_steps": steps}}
    )


def play_held_out(evaluator: Evaluator, elites: list[Elite], cut_off: int) -> np.ndarray:
    """Return the returns in the held-out episodes, float64 [elites, HELD_OUT_EPISODES], of at most `cut_off` steps."""
    seeds = held_out_seeds(HELD_OUT_EPISODES)
    outcomes = evaluator.evaluate(
        [Episode(elite.genome, seed, cut_off, elite.normalizer) for elite in elites for seed in seeds]
    )
    return np.asarray(outcomes.returns, np.float64).reshape(len(elites), len(seeds))


def table(rows: Mapping[str, np.ndarray]) -> str:
    """Format mean, standard error and range of each row's returns, float64 [episodes]."""
    lines = [f"{'':26}{'mean':>10}{'std. error':>12}{'lowest':>10}{'highest':>10}"]
    for name, returns in rows.items():
        of = summarize(returns)
        lines.append(f"{name:26}{of.mean:10,.1f}{of.standard_error:12,.1f}{returns.min():10,.0f}{returns.max():10,.0f}")
    return "\n".join(lines)


def verdict(rows: Mapping[str, np.ndarray]) -> str:
    """Return a sentence that states the winner and its margin; rows are returns in the same episodes."""
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
    """Train into `folder`, append each generation's elite to `elites` and return the last state."""

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
