"""The command `neuroevo render`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from neuroevo.cli.common import Debug, Trust, finite, reported_errors, sigterm_raises
from neuroevo.cli.replays import ElitePath, Force, Generation, Seed, progress_bar
from neuroevo.core.bounds import MAX_COUNT

if TYPE_CHECKING:
    from neuroevo.core.episode import Outcomes


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(render)


def render(
    run: ElitePath,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The file to write, FILE.mp4 or FILE.gif, or FILE.html for Brax [default: in the run's folder].",
        ),
    ] = None,
    generation: Generation = None,
    members: Annotated[
        int,
        typer.Option(min=1, help="Number of members to show side by side: the elite, then the next best ones."),
    ] = 1,
    episodes: Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="Number of consecutive episodes.")] = 1,
    seed: Seed = None,
    max_episode_steps: Annotated[
        int,
        typer.Option(
            min=0,
            max=MAX_COUNT,
            metavar="STEPS",
            help="Truncate episodes after STEPS steps; 0: never. 2500 steps are 3 minutes of Atari.",
        ),
    ] = 2500,  # a network that never starts its game would fill two hours
    scale: Annotated[
        int,
        typer.Option(
            min=1, max=16, help="Enlarge each pixel of a game to SCALE x SCALE; robots are 240 * SCALE pixels high."
        ),
    ] = 2,
    fps: Annotated[
        float | None, typer.Option(min=1, max=1000, callback=finite, help="Frames per second [default: real time].")
    ] = None,
    captions: Annotated[bool, typer.Option(help="Show the member and its return so far above each screen.")] = True,
    force: Force = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Record a video of an elite, alone or next to the next best members of its generation.

    The elite's returns are those of `neuroevo evaluate` with the same seeds and cut-off. Other members can be shown
    only while the run keeps the state before their generation. Robots are rendered without a display, by EGL or OSMesa
    (see MUJOCO_GL), at 60 frames per second or less; with --fps every step is rendered. For a run on Brax the command
    writes a web page of the elite alone, in Brax's viewer, which the page loads from the Internet.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.run import Run
        from neuroevo.analysis.web_page import Page, check_options

        source = Run(run, trust=trust)
        accelerated = source.config.environment.accelerated
        generation, _ = source.elite(generation)
        if accelerated:
            check_options(
                {
                    "--members": members > 1,
                    "--scale": scale != 2,
                    "--fps": fps is not None,
                    "--no-captions": not captions,
                }
            )
        out = out or source.folder / f"elite-{generation:06d}.{'html' if accelerated else 'mp4'}"
        with progress_bar(episodes) as bar:
            made = source.render(
                out,
                generation=generation,
                members=members,
                episodes=episodes,
                seed=seed,
                max_episode_steps=max_episode_steps,
                scale=scale,
                fps=fps,
                captions=captions,
                force=force,
                on_progress=lambda finished, steps: bar(finished, f", {steps:,} steps"),
            )
        where = f"wrote {out}: generation {generation} on {source.config.env.name}, {made.frames:,}"
        if isinstance(made, Page):
            for number in range(episodes):
                print(f"episode {number + 1}: {_played(made.outcomes, number)}")
            print(f"{where} moments", flush=True)
            return
        for number, outcomes in enumerate(made.outcomes, start=1):
            for index, name in enumerate(made.names):
                print(f"episode {number}, {name}: {_played(outcomes, index)}")
        width, height = made.size
        print(f"{where} frames of {width}x{height}, {made.fps:g} per second", flush=True)


def _played(outcomes: Outcomes, index: int) -> str:
    failed = f", then it failed: {outcomes.failures[index]}" if index in outcomes.failures else ""
    return f"return {outcomes.returns[index]:,.1f} in {outcomes.steps[index]:,} steps{failed}"
