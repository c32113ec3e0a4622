"""MuJoCo Playground tasks (Zakka et al. 2025, arXiv 2502.08844) such as `playground:CheetahRun`, on the accelerator.

They run on MJX. This module does not import Playground; neuroevo/accelerated does so when episodes are played.
"""

from __future__ import annotations

from neuroevo.core.extras import missing
from neuroevo.core.problems import Problem
from neuroevo.envs.accelerated import AcceleratedEnvironment

_PREFIX = "playground:"
_SOME = ("CartpoleBalance", "CheetahRun", "HopperHop", "HumanoidWalk", "ReacherEasy", "WalkerRun")


class PlaygroundTask(AcceleratedEnvironment):
    """Playground task. An unknown name is reported when the task is created."""

    family = "playground"
    prefix = _PREFIX
    simulator = "neuroevo.accelerated.playground_simulator"

    @classmethod
    def listing(cls) -> str:
        """Return some of the tasks."""
        return f"on the accelerator, from MuJoCo Playground: {', '.join(_PREFIX + task for task in _SOME)} ..."

    @property
    def task(self) -> str:
        """Playground's name of the task."""
        return self.name.removeprefix(_PREFIX)

    def check(self) -> list[Problem]:
        """Also report a missing Playground package."""
        found = super().check()
        if message := missing("playground", "mujoco_playground"):
            found.append(Problem("env.name", message, self.given_name))
        return found
