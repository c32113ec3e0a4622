"""The command `neuroevo info`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from neuroevo.cli.common import Debug, print_section, reported_errors

if TYPE_CHECKING:
    from neuroevo.native.library import Gpu


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(info)


def devices(gpu: Gpu) -> str:
    """Describe the device that `device = "auto"` selects on this machine, and why.

    Args:
        gpu: The machine's GPU, as native.library.gpu() describes it.
    """
    return f"the GPU ({gpu.name})" if gpu.usable else f"the CPU ({gpu.why_not})"


def info(
    games: Annotated[bool, typer.Option("--games", help="List all environments by name instead.")] = False,
    debug: Debug = False,
) -> None:
    """Show the machine, the native build, and the available algorithms, networks, presets and environments."""
    with reported_errors(debug):
        from neuroevo.algorithms.registry import ALGORITHMS
        from neuroevo.config.sources import presets
        from neuroevo.envs.registry import FAMILIES
        from neuroevo.native import library
        from neuroevo.networks.architectures import NETWORKS
        from neuroevo.networks.network import DTYPES
        from neuroevo.sessions.provenance import machine, versions

        if games:
            for family in reversed(FAMILIES):
                print(family.listing())
            return
        build = {**library.build_info(), "code for": library.cpu_level()}
        print_section("versions", versions())
        print_section("machine", machine())
        print_section("build", build)
        gpu = library.gpu()
        if gpu.cuda:
            print(f"CUDA: {gpu.cuda}")
        print(f"networks are evaluated on: {devices(gpu)}")
        print("algorithms:", ", ".join(ALGORITHMS))
        print("networks:", ", ".join(NETWORKS), "(or network.layers, or module:function)")
        print("dtypes:", ", ".join(DTYPES))
        print("presets:", ", ".join(presets()))
        print("environments (--games lists their names):")
        for family in reversed(FAMILIES):
            print(f"  {re.sub(r'(?<=[0-9][)]): .*', '', family.listing())}")  # without the names
