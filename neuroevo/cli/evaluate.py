"""The command `neuroevo evaluate`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Literal

import typer

from neuroevo.cli.common import Debug, Json, reported_errors, sigterm_raises
from neuroevo.cli.replays import Generation, RunPath, Seed, progress_bar
from neuroevo.core.bounds import MAX_COUNT, MAX_THREADS


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
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Replay an elite and print its mean return, with standard error and confidence interval.

    An Atari game without sticky actions has only 30 different starts: even among 30 episodes some are equal, and more
    episodes add little. Without a cut-off, a network that never starts its game plays until the environment's own
    limit.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.evaluation import episode_seeds
        from neuroevo.analysis.evaluation import evaluate as play
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
        evaluator = runs.make_evaluator(here, reader.reference_batch())
        try:
            if not as_json:
                print(
                    f"elite of generation {generation}: {config.network} ({evaluator.dimension:,} weights, "
                    f"mutations: {len(elite.genome.chain)}) on {config.env.name}",
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
                "env": config.env.name,
                "network": config.network.name,
                "dtype": config.network.dtype,
            }
            print(json.dumps({**who, "mutations": len(elite.genome.chain), **evaluation.row()}), flush=True)
        else:
            print("\n".join(evaluation.lines()), flush=True)
