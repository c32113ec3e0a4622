"""The command `neuroevo bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from neuroevo.cli.common import Debug, Json, finite, reported_errors
from neuroevo.core.bounds import MAX_THREADS
from neuroevo.core.genome import MAX_RANK

Game = Annotated[str, typer.Option(help="The game to play.")]
Network = Annotated[str, typer.Option(help="The network architecture.")]
DType = Annotated[Literal["float32", "int8"], typer.Option(help="Arithmetic of the network.")]
Device = Annotated[Literal["auto", "cpu", "gpu"], typer.Option(help="Where the network is evaluated.")]
Engine = Annotated[Literal["auto", "native", "tensorflow"], typer.Option(help="Implementation that runs the lanes.")]
Seconds = Annotated[float, typer.Option(min=0.1, callback=finite, help="Wall time to measure, in seconds.")]
Threads = Annotated[int | None, typer.Option(min=1, max=MAX_THREADS, help="Worker threads.")]
Lanes = Annotated[int | None, typer.Option(min=1, help="Number of lanes.")]
Slots = Annotated[int | None, typer.Option(min=1, help="Slots per lane.")]
Genomes = Annotated[
    Literal["random", "low_rank", "same"],
    typer.Option(help="A different network per episode, low-rank perturbations of one center, or one network."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the genomes and episodes.")]


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands to the application."""
    group = typer.Typer(help="Run benchmarks.", no_args_is_help=True, rich_markup_mode=None)
    group.command("rollout")(rollout)
    group.command("env")(env)
    group.command("pipeline")(pipeline)
    app.add_typer(group, name="bench")


def rollout(
    game: Game = "frostbite",
    network: Network = "large_model",
    dtype: DType = "float32",
    device: Device = "auto",
    engine: Engine = "auto",
    seconds: Seconds = 10.0,
    threads: Threads = None,
    lanes: Lanes = None,
    slots: Slots = None,
    genomes: Genomes = "random",
    rank: Annotated[int, typer.Option(min=1, max=MAX_RANK, help="Rank of low-rank perturbations.")] = 1,
    seed: Seed = 0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure the throughput of complete rollouts of random genomes: emulators and networks together."""
    with reported_errors(debug):
        from neuroevo.benchmarks import rates

        result = rates.rollout(
            game=game,
            network=network,
            seconds=seconds,
            dtype=dtype,
            device=device,
            engine=engine,
            threads=threads,
            lanes=lanes,
            slots=slots,
            genomes=genomes,
            rank=rank,
            seed=seed,
        )
        _print_result(result, as_json)


def pipeline(
    game: Game = "frostbite",
    network: Network = "large_model",
    dtype: DType = "float32",
    device: Device = "auto",
    engine: Engine = "auto",
    seconds: Seconds = 10.0,
    threads: Threads = None,
    lanes: Lanes = None,
    slots: Slots = None,
    seed: Seed = 0,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a trace of the last second as JSON for ui.perfetto.dev.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure complete rollouts, and how busy the CPU threads, the lanes and the GPU are."""
    with reported_errors(debug):
        from neuroevo.rollout.tensorflow_import import load_tensorflow

        load_tensorflow()
        from neuroevo.benchmarks import pipeline

        result = pipeline.pipeline(
            game,
            network,
            seconds,
            trace,
            dtype=dtype,
            device=device,
            engine=engine,
            threads=threads,
            lanes=lanes,
            slots=slots,
            seed=seed,
        )
        if as_json:
            _print_result(result, as_json)
            return
        by_lane = result.pop("by_lane")
        _print_result(result, as_json)
        for lane, shares in enumerate(by_lane):
            parts = ", ".join(f"{name} {share:.3f}" for name, share in shares.items() if share is not None)
            print(f"lane {lane}: {parts}")


def env(
    env: Annotated[str, typer.Option(help="The environment to step.")] = "frostbite",
    envs: Annotated[int, typer.Option(min=1, help="Number of environments stepped in a batch.")] = 16,
    threads: Threads = None,
    seconds: Seconds = 10.0,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Measure the throughput of environments alone, with random actions."""
    with reported_errors(debug):
        from neuroevo.rollout.tensorflow_import import load_tensorflow

        load_tensorflow()
        from neuroevo.benchmarks import env_rate

        _print_result(env_rate.env(name=env, envs=envs, threads=threads, seconds=seconds), as_json)


def _print_result(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(result), flush=True)
        return
    for key, value in result.items():
        if isinstance(value, float):
            value = f"{value:,.1f}" if abs(value) > 2 else f"{value:.3f}"  # small values are mostly shares
        if value is None and key in ("outside_us", "outside_share"):
            value = "not measurable: other programs used the cores"
        if value is not None:
            print(f"{key}: {value}")
