"""`neuroevo bench`."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from neuroevo.cli.common import Debug, Json, reported_errors
from neuroevo.limits import MAX_THREADS


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(help="Measure speed.", no_args_is_help=True, rich_markup_mode=None)
    group.command("rollout")(rollout)
    group.command("env")(env)
    app.add_typer(group, name="bench")


def rollout(
    game: Annotated[str, typer.Option(help="The game.")] = "frostbite",
    network: Annotated[str, typer.Option(help="The network.")] = "large_model",
    dtype: Annotated[Literal["float32", "int8"], typer.Option(help="What it is evaluated in.")] = "float32",
    seconds: Annotated[float, typer.Option(min=0.1, help="Wall time to measure.")] = 10.0,
    threads: Annotated[int | None, typer.Option(min=1, max=MAX_THREADS, help="Worker threads.")] = None,
    lanes: Annotated[int | None, typer.Option(min=1, help="Lanes.")] = None,
    slots: Annotated[int | None, typer.Option(min=1, help="Slots per lane.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of genomes and episodes.")] = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Whole rollouts of random genomes: emulators and networks."""
    with reported_errors(debug):
        from neuroevo.quiet import load_tensorflow

        load_tensorflow()
        from neuroevo import bench

        options = {"dtype": dtype, "threads": threads, "lanes": lanes, "slots": slots, "seed": seed}
        _print_result(bench.rollout(game=game, network=network, seconds=seconds, **options), as_json)


def env(
    env: Annotated[str, typer.Option(help="The environment.")] = "frostbite",
    envs: Annotated[int, typer.Option(min=1, help="Environments stepped at once.")] = 16,
    threads: Annotated[int | None, typer.Option(min=1, max=MAX_THREADS, help="Worker threads.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Wall time to measure.")] = 10.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Environments alone, with random actions."""
    with reported_errors(debug):
        from neuroevo.quiet import load_tensorflow

        load_tensorflow()
        from neuroevo import bench

        _print_result(bench.env(name=env, envs=envs, threads=threads, seconds=seconds), as_json)


def _print_result(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result), flush=True)
        return
    for key, value in result.items():
        print(f"{key}: {value:,.1f}" if isinstance(value, float) else f"{key}: {value}")
