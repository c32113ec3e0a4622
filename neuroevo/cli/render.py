"""`neuroevo render`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuroevo.cli.common import Debug, finite, reported_errors, sigterm_raises
from neuroevo.cli.replays import Force, Generation, RunPath, Seed, progress_bar
from neuroevo.limits import MAX_COUNT


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(render)


def render(
    run: RunPath,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The video, FILE.mp4 or FILE.gif.")],
    generation: Generation = None,
    members: Annotated[
        int,
        typer.Option(min=1, help="Show the elite and the next best of its generation, so many, side by side."),
    ] = 1,
    episodes: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="How many, one after another.")] = 1,
    seed: Seed = None,
    cutoff: Annotated[
        int,
        typer.Option(
            min=0, max=MAX_COUNT, metavar="STEPS", help="Cut episodes off; 0: never. 2500 are 3 minutes of Atari."
        ),
    ] = 2500,  # a network that never starts its game would fill two hours
    scale: Annotated[int, typer.Option(min=1, max=16, help="Pixels a side for each pixel of the game.")] = 2,
    fps: Annotated[
        float | None, typer.Option(min=1, max=1000, callback=finite, help="Frames a second [default: real time].")
    ] = None,
    captions: Annotated[bool, typer.Option(help="Write who plays and the return so far above each screen.")] = True,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Make a video of an elite at play, alone or beside the next best members of its generation.

    Its returns are those of `neuroevo evaluate` with the same seeds and cut-off. Members other than the elite are known
    as long as the run keeps the checkpoint from before their generation.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.evaluate import episode_seeds
        from neuroevo.output import written_aside
        from neuroevo.render import choose_players
        from neuroevo.render import render as play
        from neuroevo.run_reader import RunReader
        from neuroevo.video import check_format

        check_format(out)
        reader = RunReader(run)
        generation, players = choose_players(reader, generation, members)
        options = {"cutoff": cutoff, "scale": scale, "fps": fps, "captions": captions, "reference": reader.reference()}
        with written_aside(out, force) as aside, progress_bar(episodes) as bar:
            seeds = episode_seeds(episodes, seed)
            rendered = play(
                reader.config, players, seeds, aside, **options, on_progress=lambda e, s: bar(e, f", step {s:,}")
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
