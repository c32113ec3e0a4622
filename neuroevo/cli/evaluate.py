"""The command `neuroevo evaluate`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from neuroevo.cli.common import Debug, Json, reported_errors, sigterm_raises
from neuroevo.cli.replays import Generation, RunPath, Seed, progress_bar
from neuroevo.core.bounds import MAX_COUNT, MAX_THREADS
from neuroevo.core.errors import UserError

if TYPE_CHECKING:
    from neuroevo.config.schema import Env


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command()(evaluate)


def evaluate(
    run: RunPath,
    generation: Generation = None,
    episodes: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="Number of episodes.")] = 30,
    seed: Seed = None,
    max_episode_steps: Annotated[
        int, typer.Option(min=0, max=MAX_COUNT, metavar="STEPS", help="Cut episodes off after STEPS; 0: never.")
    ] = 0,
    device: Annotated[
        Literal["auto", "cpu", "gpu"] | None,
        typer.Option(help="Where networks are evaluated [default: as in the run]."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, max=MAX_THREADS, help="Worker threads [default: as in the run].")
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Play the same robot in another simulator, such as brax:hopper."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="An option of --env, such as env.options.backend=spring."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay an elite and print its mean return, with standard error and confidence interval.

    An Atari game without sticky actions has only 30 different starts: even among 30 episodes some are equal, and more
    episodes add little. Without a cut-off, a network that never starts its game plays until the environment's own
    limit.

    With --env the elite plays the same robot in another simulator: a run on Hopper-v5 on brax:hopper, or the reverse.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.evaluation import episode_seeds
        from neuroevo.analysis.evaluation import evaluate as play
        from neuroevo.analysis.transfer import transfer
        from neuroevo.runs import training_run as runs
        from neuroevo.runs.reader import RunReader

        reader = RunReader(run)
        generation, elite = reader.elite(generation)
        config = reader.config
        hardware = config.hardware
        if device is not None:
            hardware = replace(hardware, device=device)
        if threads is not None:
            hardware = replace(hardware, threads=threads)
        here = replace(config, hardware=hardware).on_this_machine()
        mutations, note = len(elite.genome.chain), None
        if env is None and not overrides:
            evaluator = runs.make_evaluator(here, reader.reference_batch())
        else:
            moved = transfer(here, elite, _other(here.env, env, overrides or []))
            evaluator, elite, here, note = moved.evaluator, moved.elite, moved.config, moved.note
        try:
            if not as_json:
                print(
                    f"elite of generation {generation}: {config.network} ({evaluator.dimension:,} weights, "
                    f"mutations: {mutations}) on {here.env.name}" + (f"; {note}" if note else ""),
                    flush=True,
                )
            with progress_bar(episodes) as bar:
                evaluation = play(
                    evaluator,
                    elite,
                    episode_seeds(episodes, seed),
                    max_episode_steps,
                    lambda finished, steps: bar(finished, f", {steps:,} steps"),
                )
        finally:
            evaluator.close()
        if as_json:
            who = {
                "generation": generation,
                "env": here.env.name,
                **({} if note is None else {"trained_on": config.env.name, "observations": note}),
                "network": config.network.name,
                "dtype": config.network.dtype,
            }
            print(json.dumps({**who, "mutations": mutations, **evaluation.row()}), flush=True)
        else:
            print("\n".join(evaluation.lines()), flush=True)


def _other(section: Env, name: str | None, overrides: list[str]) -> Env:
    """The environment to play in instead of the run's; its options are the run's only where its name is."""
    from neuroevo.config.schema import Env
    from neuroevo.config.sources import apply, key_of

    options = dict(section.options) if name in (None, section.name) else {}
    tables: dict[str, Any] = {"env": {"name": name or section.name, "options": options}}
    for override in overrides:
        if not key_of(override).startswith("env.options."):
            raise UserError(f"--set {override}: expected an option of the environment, env.options.KEY=VALUE")
        apply(tables, override)
    return Env(**tables["env"])
