"""The command `neuroevo config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from neuroevo.cli import paths
from neuroevo.cli.common import Debug, Overrides, Trust, reported_errors

if TYPE_CHECKING:
    from neuroevo.config.schema import Config

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A TOML file, a preset's name, or a JSON file of the 2018 code.",
        autocompletion=paths.presets,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands to the application."""
    group = typer.Typer(help="Check and show configurations.", no_args_is_help=True, rich_markup_mode=None)
    for command in (check, show, presets):
        group.command()(command)
    app.add_typer(group, name="config")


def check(file: File, overrides: Overrides = None, trust: Trust = False, debug: Debug = False) -> None:
    """Check a configuration: print a one-line summary, or list all of its problems."""
    with reported_errors(debug):
        from neuroevo.config.load import load_config
        from neuroevo.core.problems import refuse
        from neuroevo.sessions import preflight

        config = load_config(file, overrides or [], trust=trust)
        refuse(preflight.problems(config, trust=trust), file)
        print(f"{file} is fine: {summary(config)}")


def show(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="As for check [default: a configuration to start from].",
            autocompletion=paths.presets,
        ),
    ] = None,
    overrides: Overrides = None,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Print a configuration as TOML with every default filled in; without FILE, every key with its documentation."""
    with reported_errors(debug):
        from neuroevo.config.load import load_config
        from neuroevo.config.template import documented, start

        given = overrides or []
        print(documented(start(given)) if file is None else load_config(file, given, trust=trust).toml(), end="")


def presets(debug: Debug = False) -> None:
    """List the presets, whose names can be given to other commands instead of a file."""
    with reported_errors(debug):
        from neuroevo.config import sources

        files = sources.presets()
        width = max(map(len, files), default=0)
        for name, path in files.items():
            print(f"{name:{width}}  {sources.description(path)}")


def summary(config: Config) -> str:
    """Summarize a configuration in a clause: algorithm, environment, network, population and budgets."""
    training = config.training
    ends = [
        f"{value:,g} {unit}" if isinstance(value, float) else f"{value:,} {unit}"
        for value, unit in (
            (training.total_steps, "steps"),
            (training.generations, "generations"),
            (training.minutes, "minutes"),
            (training.target_return, "points"),
        )
        if value is not None
    ]
    population = config.tables()["algorithm"].get("population")  # absent from some external algorithms
    return (
        f"{config.algorithm_name} on {config.env.name} with {config.network}, "
        + ("" if population is None else f"population {population:,}, ")
        + f"ends after {' or '.join(ends)}"
    )
