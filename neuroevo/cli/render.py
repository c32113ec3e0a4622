"""The command `neuroevo render`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuroevo.cli.common import Debug, finite, reported_errors, sigterm_raises
from neuroevo.cli.replays import Force, Generation, RunPath, Seed, progress_bar
from neuroevo.core.bounds import MAX_COUNT


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command()(render)


def render(
    run: RunPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The video to write, FILE.mp4 or FILE.gif.")],
    generation: Generation = None,
    members: Annotated[
        int,
        typer.Option(min=1, help="Number of players to show side by side: the elite, then the next best members."),
    ] = 1,
    episodes: Annotated[
        int, typer.Option(min=1, max=MAX_COUNT, help="Number of episodes, shown one after another.")
    ] = 1,
    seed: Seed = None,
    max_episode_steps: Annotated[
        int,
        typer.Option(
            min=0,
            max=MAX_COUNT,
            metavar="STEPS",
            help="Cut episodes off after STEPS; 0: never. 2500 are 3 minutes of Atari.",
        ),
    ] = 2500,  # a network that never starts its game would fill two hours
    scale: Annotated[
        int, typer.Option(min=1, max=16, help="Enlarge each pixel of the game to SCALE x SCALE pixels.")
    ] = 2,
    fps: Annotated[
        float | None, typer.Option(min=1, max=1000, callback=finite, help="Frames per second [default: real time].")
    ] = None,
    captions: Annotated[bool, typer.Option(help="Write the player and its return so far above each screen.")] = True,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Make a video of an elite at play, alone or beside the next best members of its generation.

    The elite's returns are those of `neuroevo evaluate` with the same seeds and cut-off. Other members can only be
    shown as long as the run keeps the checkpoint from before their generation.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.evaluation import episode_seeds
        from neuroevo.analysis.rendering import choose_players
        from neuroevo.analysis.rendering import render as play
        from neuroevo.analysis.video.writer import check_format
        from neuroevo.runs.reader import RunReader
        from neuroevo.system.files import written_aside

        check_format(out)
        reader = RunReader(run)
        generation, players = choose_players(reader, generation, members)
        reference_batch = reader.reference_batch()
        with written_aside(out, force) as aside, progress_bar(episodes) as bar:
            seeds = episode_seeds(episodes, seed)
            rendered = play(
                reader.config,
                players,
                seeds,
                aside,
                max_episode_steps=max_episode_steps,
                scale=scale,
                fps=fps,
                captions=captions,
                reference_batch=reference_batch,
                on_progress=lambda finished, step: bar(finished, f", step {step:,}"),
            )
        for number, outcomes in enumerate(rendered.outcomes, start=1):
            for m, player in enumerate(players):
                failed = f", then it failed: {outcomes.failures[m]}" if m in outcomes.failures else ""
                played = f"return {outcomes.returns[m]:,.1f} in {outcomes.steps[m]:,} steps"
                print(f"episode {number}, {player.name}: {played}{failed}")
        width, height = rendered.size
        print(
            f"wrote {out}: generation {generation} on {reader.config.env.name}, {rendered.frames:,} frames of "
            f"{width}x{height}, {rendered.fps:g} a second",
            flush=True,
        )
