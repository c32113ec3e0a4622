"""The command `neuroevo train`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, Overrides, Trust, reported_errors, sigterm_raises
from neuroevo.core.errors import DiskError, EnvironmentFailure, UserError

if TYPE_CHECKING:
    from neuroevo.sessions.folder import RunFolder


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(train)


def train(
    config: Annotated[
        Path | None,
        typer.Argument(
            metavar="CONFIG",
            help="A TOML file, a preset's name, or a JSON file of the 2018 code.",
            autocompletion=paths.presets,
        ),
    ] = None,
    overrides: Overrides = None,
    out: Annotated[
        Path | None,
        typer.Option(parser=paths.folder, metavar="PATH", help="The run's folder [default: runs/CONFIG-TIME]."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            parser=paths.folder,
            metavar="DIR",
            help="Resume the run in this folder; with CONFIG, start a new run if the folder has none.",
        ),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The environment; same as --set env.name=..."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Wall-clock budget in minutes; same as --set training.minutes=..."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=2**63 - 1, help="The run's seed; same as --set training.seed=..."),
    ] = None,
    device: Annotated[
        Literal["auto", "cpu", "gpu"] | None,
        typer.Option(help="Device that evaluates networks; same as --set hardware.device=..."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Ray cluster to use: auto, HOST:PORT, local or none; same as --set cluster.address=...",
        ),
    ] = None,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Train a population of networks with a configuration, or resume an interrupted run."""
    with reported_errors(debug), sigterm_raises():
        options = {
            "env.name": env,
            "training.minutes": minutes,
            "training.seed": seed,
            "hardware.device": device,
            "cluster.address": cluster,
        }
        changes = [*(overrides or []), *(f"{key}={value}" for key, value in options.items() if value is not None)]
        train_run(choose_folder(config, changes, out, resume, trust))


def choose_folder(
    config: Path | None, overrides: list[str], out: Path | None, resume: Path | None, trust: bool = False
) -> RunFolder:
    """Prepare the folder of the run to train.

    Args:
        config: The file or preset of a new run; None to resume one.
        overrides: Changes to the configuration's keys, such as "training.seed=3".
        out: The folder of a new run; None for the default.
        resume: The folder of a run to resume; with `config`, a new run is started if the folder has none.
        trust: Allow external code and models referenced by runs that the user did not create.

    Returns:
        The folder; nothing has been written to it yet.

    Raises:
        UserError: The options contradict each other, the configuration has problems, a new run's folder is taken, or
            the run cannot be resumed.
    """
    from neuroevo.config.load import load_config
    from neuroevo.sessions.folder import RunFolder

    if resume is not None and out is not None:
        raise UserError("--out and --resume cannot be combined: a resumed run stays in its folder")
    if config is None:
        if resume is None:
            raise UserError("expected a configuration file, a preset's name, or --resume with a run's folder")
        return RunFolder.resume(resume, overrides, trust=trust)
    checked = load_config(config, overrides, trust=trust)
    if resume is not None:
        return RunFolder.resume_or_create(resume, checked, trust=trust)
    return RunFolder.create(out, checked, config.stem, trust=trust)


def train_run(folder: RunFolder) -> None:
    """Train in a run's folder until a budget is spent, and print the progress.

    Args:
        folder: The run's folder; this function opens and closes it.

    Raises:
        KeyboardInterrupt: The run was interrupted or terminated; the message shows how to resume it.
        DiskError: The disk is full or broken; the message shows how to resume the run.
        EnvironmentFailure: An environment of Gymnasium failed; the message shows how to resume the run.
    """
    from neuroevo.sessions.evaluators import info_of, make_evaluator
    from neuroevo.sessions.progress import make_progress
    from neuroevo.sessions.training_run import run
    from neuroevo.system.console import say
    from neuroevo.training.state import finished, spent

    config, before = folder.config, folder.state
    for unusable in folder.unusable:
        print(f"neuroevo: skipped {unusable}", file=sys.stderr, flush=True)
    evaluator = make_evaluator(config, folder.reference_batch)
    try:
        with folder.open(sys.argv, info_of(evaluator)), make_progress() as progress:
            weights = f"{config.network} ({evaluator.dimension:,} weights, on the {evaluator.device})"
            generation = folder.state.generation
            where = f"into {folder.path}" + (f", from generation {generation}" if generation else "")
            seed = config.training.seed
            say(f"{config.algorithm_name} on {config.env.name}, {weights}, seed {seed}, {where}")
            if config.environment.rules:
                say(f"{config.env.name} is played by {config.environment.rules}")
            try:
                state = run(config, evaluator, folder, [progress])
            except KeyboardInterrupt as interrupt:
                raise type(interrupt)(f"; to resume: neuroevo train --resume {folder.path}") from None
            except DiskError as error:
                raise DiskError(f"{error}; to resume: neuroevo train --resume {folder.path}") from error
            except EnvironmentFailure as error:  # the message usually ends with a traceback, hence the newline
                raise EnvironmentFailure(f"{error}\nto resume: neuroevo train --resume {folder.path}") from error
        if finished(before, config.training):
            budgets = "training.generations, training.minutes, training.total_steps or training.target"
            say(f"the run was already finished; to continue it, increase {budgets} with --set")
        say(f"finished {spent(state, config.training)}; results are in {folder.path}")
        if sys.stdout.isatty():
            for command in ("inspect", "evaluate", "plot", "render"):
                say(f"  neuroevo {command} {folder.path}")
    finally:
        evaluator.close()
