"""The command `neuroevo`. Exit codes: 0, 1 for a failure, 2 for a mistake of the user's, 130 for Ctrl-C."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuroevo.errors import UserError

if TYPE_CHECKING:
    from neuroevo.config import Config

app = typer.Typer(
    help="Neuroevolution of deep networks: emulators on the CPU, a population of networks beside them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
bench_app = typer.Typer(help="Measure speed.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(bench_app, name="bench")

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line that is one JSON object.")]


@contextmanager
def reported_errors(debug: bool = False) -> Iterator[None]:
    """Turns exceptions into one clear message on standard error and an exit code."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt as error:
        code, message = 130, f"interrupted{error}"
    except UserError as error:
        code, message = 2, str(error)
        _trace(debug)
    except Exception as error:
        hint = "" if debug else " (--debug shows where)"
        code, message = 1, f"failed: {type(error).__name__}: {error}{hint}"
        _trace(debug)
    else:
        return
    print(f"neuroevo: {message}", file=sys.stderr, flush=True)
    raise typer.Exit(code)


def _trace(debug: bool) -> None:
    if debug:
        traceback.print_exc()


@app.command()
def train(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A TOML file, such as those in experiments/.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key, such as training.seed=3.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder [default: runs/CONFIG-TIME].")] = None,
    debug: Debug = False,
) -> None:
    """Evolve networks as a configuration says."""
    with reported_errors(debug):
        from neuroevo.config import load_config

        train_run(load_config(config, overrides or ()), config, out)


def train_run(config: Config, config_path: Path, out: Path | None) -> None:
    """Trains as a checked Config says, into the folder `out`, and prints how it goes."""
    from neuroevo.progress import make_watcher
    from neuroevo.run import make_evaluator, run
    from neuroevo.run_folder import RunFolder, check_free, default_path
    from neuroevo.train import spent

    out = out or default_path(config_path)
    check_free(out)  # before TensorFlow is loaded for nothing
    evaluator = make_evaluator(config)
    try:
        facts = {"parameters": evaluator.dimension, "actions": evaluator.num_actions}
        with RunFolder(out, config, sys.argv, facts) as folder, make_watcher() as watcher:
            weights = f"{config.network.name} ({evaluator.dimension:,} weights)"
            where = f"seed {config.training.seed}, into {out}"
            print(f"{config.algorithm_name} on {config.env.name}, {weights}, {where}", flush=True)
            try:
                state = run(config, evaluator, folder, watcher)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"; the finished generations are in {out}") from None
        print(f"finished {spent(state, config.training)}; results are in {out}")
    finally:
        evaluator.close()


@app.command("info")
def show_info(debug: Debug = False) -> None:
    """List games, networks, algorithms, devices and how the native code was built."""
    with reported_errors(debug):
        from neuroevo import envs, networks, ops
        from neuroevo.algorithms import ALGORITHMS
        from neuroevo.run_folder import machine, versions

        build = ops.build_info()
        games = envs.games()
        _section("versions", versions())
        _section("machine", machine())
        _section("build", build)
        print("algorithms:", ", ".join(ALGORITHMS))
        print("networks:", ", ".join(networks.NETWORKS))
        print(f"games ({len(games)}):", ", ".join(games))


def _section(title: str, values: dict[str, Any]) -> None:
    print(f"{title}:")
    for key, value in values.items():
        print(f"  {key}: {', '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")


@bench_app.command("rollout")
def bench_rollout(
    game: Annotated[str, typer.Option(help="The game.")] = "frostbite",
    network: Annotated[str, typer.Option(help="The network.")] = "large_model",
    seconds: Annotated[float, typer.Option(min=0.1, help="Wall time to measure.")] = 10.0,
    threads: Annotated[int | None, typer.Option(min=1, help="Worker threads.")] = None,
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

        options = {"threads": threads, "lanes": lanes, "slots": slots, "seed": seed}
        _print_result(bench.rollout(game=game, network=network, seconds=seconds, **options), as_json)


@bench_app.command("env")
def bench_env(
    env: Annotated[str, typer.Option(help="The environment.")] = "frostbite",
    envs: Annotated[int, typer.Option(min=1, help="Environments stepped at once.")] = 16,
    threads: Annotated[int | None, typer.Option(min=1, help="Worker threads.")] = None,
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


def main() -> None:
    """Entry point of the console script."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
