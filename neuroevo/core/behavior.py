"""What characterizes an episode for novelty search: where it ended, or what it passed through."""

from __future__ import annotations

from dataclasses import dataclass

from neuroevo.core.problems import Problem, refuse


@dataclass(frozen=True)
class Behavior:
    """What is recorded of an episode, in terms of the environment's behavior: of Atari the RAM, of a robot or a maze
    the position.

    every: 0 for the one at the episode's end. Else a trajectory: those after steps every, 2 * every, and so on.
    samples: how many of a trajectory; those after the episode's end are the last one again.
    """

    every: int = 0
    samples: int = 1


def trajectory(every: int, samples: int) -> Behavior:
    """What the settings trajectory_every and trajectory_samples mean.

    Raises:
        ConfigError: Many samples, but no trajectory.
    """
    if not every and samples != 1:
        refuse([Problem("trajectory_samples", "expected 1 where trajectory_every = 0", samples)])
    return Behavior(every, samples)
