"""MuJoCo Playground's tasks (Zakka et al. 2025, arXiv 2502.08844), `playground:CheetahRun`, on MJX on the accelerator.

Nothing of it is imported here; neuroevo/accelerated does that when episodes are played.
"""

from __future__ import annotations

from neuroevo.core.extras import missing
from neuroevo.core.problems import Problem
from neuroevo.envs.accelerated import AcceleratedEnvironment

_PREFIX = "playground:"
_SOME = ("CartpoleBalance", "CheetahRun", "HopperHop", "HumanoidWalk", "ReacherEasy", "WalkerRun")


class PlaygroundTask(AcceleratedEnvironment):
    """A task of Playground. An unknown name is found out when the task is made."""

    family = "playground"
    prefix = _PREFIX
    simulator = "neuroevo.accelerated.playground_simulator"

    @classmethod
    def listing(cls) -> str:
        """Return some of them."""
        return f"on the accelerator, of MuJoCo Playground: {', '.join(_PREFIX + task for task in _SOME)} ..."

    @property
    def task(self) -> str:
        """Playground's name of it."""
        return self.name.removeprefix(_PREFIX)

    def check(self) -> list[Problem]:
        """Report that Playground is not installed, too."""
        found = super().check()
        if message := missing("playground", "mujoco_playground"):
            found.append(Problem("env.name", message, self.given_name))
        return found
