"""The command `neuroevo export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from neuroevo.cli.common import Debug, Trust, reported_errors, sigterm_raises
from neuroevo.cli.replays import ElitePath, Force, Generation


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(export)


def export(
    run: ElitePath,
    form: Annotated[
        Literal["keras", "savedmodel", "onnx", "npz", "genome"], typer.Option("--format", help="Format to write.")
    ] = "keras",
    out: Annotated[
        Path | None,
        typer.Option(help="The file, or for savedmodel the folder, to write [default: in the run's folder]."),
    ] = None,
    generation: Generation = None,
    force: Force = False,
    trust: Trust = False,
    debug: Debug = False,
) -> None:
    """Export an elite as a network that works without neuroevo: a Keras or ONNX model, a SavedModel or NumPy arrays.

    With --format genome, write a genome file instead: the configuration and the seeds of the elite, a few kilobytes of
    text, which `evaluate`, `render` and `export` accept in place of a run's folder.

    The network takes a batch of the environment's observations, uint8 [K, 84, 84, 4] for Atari and float64
    [K, n] for MuJoCo, and returns float32 [K, outputs]. The command prints how to turn the outputs into an action, with
    the sizes and bounds of this run:

    With A discrete actions there are A outputs; the action is the index of the largest.

    With continuous actions of A numbers there are A outputs y; each number is
    low + (clip(y, -1, 1) + 1) / 2 * (high - low) if its bounds are finite, else y itself.

    With network.action_bins = B there are A * B outputs, B for each number in turn; the number is
    low + b * (high - low) / (B - 1), where b is the index of the largest of its B outputs.
    """
    with reported_errors(debug), sigterm_raises():
        from neuroevo.analysis.exported_network import how_to_act
        from neuroevo.analysis.network_export import GENOME, SUFFIXES
        from neuroevo.analysis.network_export import export as write
        from neuroevo.runs.reader import RunReader

        reader = RunReader(run, trust=trust)
        generation, _ = reader.elite(generation)
        path = out or reader.folder / f"elite-{generation:06d}{SUFFIXES[form] or '-' + form}"
        network = write(reader, generation, path, form, force=force)
        print(f"wrote {path}: elite of generation {generation}, {network.theta.size:,} weights, as {form}", flush=True)
        print(how_to_act(network), flush=True)
        if network.dtype == "int8" and form != GENOME:
            exact = "; the int8 weights are in the arrays *.kernel_int8 and *.exponent" if form == "npz" else ""
            print(f"the run used int8; these are the float32 weights, which mostly choose the same actions{exact}")
