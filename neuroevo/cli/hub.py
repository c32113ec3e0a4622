"""The commands `neuroevo push` and `neuroevo pull`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from neuroevo.cli.common import Debug, Trust, reported_errors, sigterm_raises
from neuroevo.cli.replays import RunPath

Repository = Annotated[str, typer.Argument(metavar="USER/NAME", help="A repository on the Hugging Face Hub.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(push)
    app.command()(pull)


def push(
    run: RunPath,
    repo: Repository,
    private: Annotated[
        bool, typer.Option("--private", help="Create a private repository; an existing one must be private.")
    ] = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Upload a run to the Hugging Face Hub, with a model card and a video of its last elite.

    The uploaded database contains the command line, a description of this machine and paths on it, which everyone with
    access to the repository can read. The card of an existing repository is replaced.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.hub import push as upload

        pushed = upload(run, repo, private=private, trust=trust)
        if pushed.no_video is not None:
            print(f"no video: {pushed.no_video}", flush=True)
        print(f"pushed {run} to {pushed.url}", flush=True)


def pull(
    repo: Repository,
    out: Annotated[Path | None, typer.Option(help="The run's folder [default: runs/NAME].")] = None,
    revision: Annotated[str | None, typer.Option(help="A branch, tag or commit [default: the newest].")] = None,
    debug: Debug = False,
) -> None:
    """Download a run from the Hugging Face Hub, to evaluate, render or resume it."""
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.hub import pull as download

        path = download(repo, out, revision=revision)
        print(f"pulled {repo} to {path}; next: neuroevo evaluate {path}", flush=True)
