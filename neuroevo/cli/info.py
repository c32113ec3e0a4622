"""The command `neuroevo info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from neuroevo.cli.common import Debug, print_section, reported_errors

if TYPE_CHECKING:
    from neuroevo.native.library import Gpu


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command()(info)


def devices(gpu: Gpu) -> str:
    """Describes what `device = "auto"` chooses on this machine, and why.

    Args:
        gpu: The machine's GPU, as native.library.gpu() describes it.
    """
    return f"the GPU ({gpu.name})" if gpu.usable else f"the CPU ({gpu.why_not})"


def info(debug: Debug = False) -> None:
    """List games, networks, algorithms and presets, and show the machine and how the native code was built."""
    with reported_errors(debug):
        from neuroevo.algorithms.registry import ALGORITHMS
        from neuroevo.config.sources import presets
        from neuroevo.envs.registry import FAMILIES
        from neuroevo.native import library
        from neuroevo.networks import architectures
        from neuroevo.runs.provenance import machine, versions

        build = library.build_info()
        print_section("versions", versions())
        print_section("machine", machine())
        print_section("build", build)
        print(f"networks are evaluated on: {devices(library.gpu())}")
        print("algorithms:", ", ".join(ALGORITHMS))
        print("networks:", ", ".join(architectures.NETWORKS))
        print("dtypes:", ", ".join(architectures.DTYPES))
        print("presets:", ", ".join(presets()))
        for family in reversed(FAMILIES):
            print(family.listing())
