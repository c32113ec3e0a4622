"""MuJoCo Playground's tasks (Zakka et al. 2025, arXiv 2502.08844), `playground:CheetahRun`, on MJX on the accelerator.

Nothing of it is imported here; neuroevo/accelerated does that when episodes are played.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from neuroevo.core.problems import Problem
from neuroevo.envs.accelerated import AcceleratedFamily

PREFIX = "playground:"
_SOME = ("CartpoleBalance", "CheetahRun", "HopperHop", "HumanoidWalk", "ReacherEasy", "WalkerRun")
_EXTRA = "`pip install neuroevo[playground]` installs it"


class PlaygroundFamily(AcceleratedFamily):
    """Playground's tasks, of which a name that there is not is found when it is made; see EnvFamily."""

    name = "playground"
    prefix = PREFIX

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:
        """There may be no Playground, too."""
        found = super().problems(name, given_name, options)
        if importlib.util.find_spec("mujoco_playground") is None:
            found.append(Problem("env.name", f"MuJoCo Playground is not installed; {_EXTRA}", given_name))
        return found

    def listing(self) -> str:
        """How they are named."""
        return f"on the accelerator, of MuJoCo Playground: {', '.join(PREFIX + task for task in _SOME)} ..."
