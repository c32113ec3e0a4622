"""The command `neuroevo evaluate`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from neuroevo.cli.common import Debug, Json, Trust, reported_errors, sigterm_raises
from neuroevo.cli.replays import ElitePath, Generation, Seed, progress_bar
from neuroevo.core.bounds import MAX_COUNT, MAX_THREADS
from neuroevo.core.errors import UserError

if TYPE_CHECKING:
    from neuroevo.config.schema import Config
    from neuroevo.runs.reader import Elite
    from neuroevo.sessions.evaluators import AnyEvaluator


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(evaluate)


def evaluate(
    run: ElitePath,
    generation: Generation = None,
    episodes: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="Number of episodes.")] = 30,
    seed: Seed = None,
    max_episode_steps: Annotated[
        int, typer.Option(min=0, max=MAX_COUNT, metavar="STEPS", help="Truncate episodes after STEPS steps; 0: never.")
    ] = 0,
    device: Annotated[
        Literal["auto", "cpu", "gpu"] | None,
        typer.Option(help="Device that evaluates networks [default: as in the run]."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help="Worker threads [default: as in the run].")
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Evaluate in another simulator of the same robot, such as brax:hopper."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="An option of the environment, such as env.options.backend=spring."
        ),
    ] = None,
    as_json: Json = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Replay an elite and print its mean return, with standard error and confidence interval.

    In most Atari games without sticky actions, a network has only four different episodes, so more episodes add little;
    the number of different returns shows it. Without a cut-off, a network that never starts its game plays until the
    environment's own limit.

    With --env the elite controls the same robot in another simulator: the elite of a run on Hopper-v5 in brax:hopper,
    for example, or vice versa.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.evaluation import episode_seeds
        from neuroevo.analysis.evaluation import evaluate as play

        chosen = _of_run(run, generation, env, overrides or [], device, threads, trust)
        try:
            if not as_json:
                print(f"{chosen.title} on {chosen.config.env.name}{chosen.note and f'; {chosen.note}'}", flush=True)
            with progress_bar(episodes) as bar:
                evaluation = play(
                    chosen.evaluator,
                    chosen.elite,
                    episode_seeds(episodes, seed),
                    max_episode_steps,
                    lambda finished, steps: bar(finished, f", {steps:,} steps"),
                )
        finally:
            chosen.evaluator.close()
        if as_json:
            print(json.dumps({**chosen.facts, **evaluation.row()}), flush=True)
        else:
            print("\n".join(evaluation.lines()), flush=True)


@dataclass(frozen=True)
class _Chosen:
    """Elite, evaluator and environment of an evaluation; `facts` are the fields that --json adds."""

    config: Config
    evaluator: AnyEvaluator
    elite: Elite
    title: str
    facts: dict[str, Any]
    note: str = ""


def _of_run(
    run: Path,
    generation: int | None,
    env: str | None,
    overrides: list[str],
    device: str | None,
    threads: int | None,
    trust: bool,
) -> _Chosen:
    from neuroevo.analysis.transfer import transfer
    from neuroevo.config.schema import Env
    from neuroevo.config.sources import apply, key_of
    from neuroevo.runs.reader import RunReader
    from neuroevo.sessions.evaluators import make_evaluator

    reader = RunReader(run, trust=trust)
    generation, elite = reader.elite(generation)
    config, network = _here(reader.config, device, threads), reader.config.network
    mutations, note = elite.genome.depth, ""
    facts: dict[str, Any] = {"generation": generation}
    if env is None and not overrides:
        evaluator = make_evaluator(config, reader.reference_batch())
    else:
        same = env in (None, config.env.name)
        tables: dict[str, Any] = {
            "env": {"name": env or config.env.name, "options": dict(config.env.options) if same else {}}
        }
        for override in overrides:
            if not key_of(override).startswith("env.options."):
                raise UserError(f"--set {override}: expected env.options.KEY=VALUE; other keys have no effect here")
            apply(tables, override)
        moved = transfer(config, elite, Env(**tables["env"]))
        evaluator, elite, config, note = moved.evaluator, moved.elite, moved.config, moved.note
        facts |= {"trained_on": reader.config.env.name, "observations": note}
    facts |= {"env": config.env.name, "network": network.name, "dtype": network.dtype, "mutations": mutations}
    title = f"elite of generation {generation}: {network} ({evaluator.dimension:,} weights, mutations: {mutations})"
    return _Chosen(config, evaluator, elite, title, facts, note)


def _here(config: Config, device: str | None, threads: int | None) -> Config:
    hardware = config.hardware
    if device is not None:
        hardware = replace(hardware, device=device)
    if threads is not None:
        hardware = replace(hardware, threads=threads)
    return replace(config, hardware=hardware).on_this_machine()
