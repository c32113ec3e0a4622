"""`neuroevo info`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from neuroevo.cli.common import Debug, print_section, reported_errors

if TYPE_CHECKING:
    from neuroevo.ops import Gpu


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(info)


def devices(gpu: Gpu) -> str:
    """What `device = "auto"` chooses here, and why."""
    return f"the GPU ({gpu.name})" if gpu.usable else f"the CPU ({gpu.why_not})"


def info(debug: Debug = False) -> None:
    """List games, networks, algorithms, presets and how the native code was built."""
    with reported_errors(debug):
        from neuroevo import atari_games, hard_maze_tasks, mujoco_tasks, networks, ops, presets
        from neuroevo.algorithms import ALGORITHMS
        from neuroevo.facts import machine, versions

        build = ops.build_info()
        games = atari_games.names()
        print_section("versions", versions())
        print_section("machine", machine())
        print_section("build", build)
        print(f"networks are evaluated on: {devices(ops.gpu())}")
        print("algorithms:", ", ".join(ALGORITHMS))
        print("networks:", ", ".join(networks.NETWORKS))
        print("dtypes:", ", ".join(networks.DTYPES))
        print("presets:", ", ".join(presets.presets()))
        print(f"games ({len(games)}):", ", ".join(games))
        print(f"tasks ({len(mujoco_tasks.TASKS)}):", ", ".join(f"{task}-v5" for task in mujoco_tasks.TASKS))
        print(f"mazes ({len(hard_maze_tasks.TASKS)}):", ", ".join(hard_maze_tasks.TASKS))
        print("and any environment of Gymnasium, such as gymnasium:CartPole-v1 or gymnasium:my_module:MyEnv-v0")
