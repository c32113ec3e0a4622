"""What characterizes an episode for novelty search: where it ended, or its trajectory."""

from __future__ import annotations

from dataclasses import dataclass

from neuroevo.core.problems import Problem, refuse


@dataclass(frozen=True)
class Behavior:
    """What is recorded of an episode: samples of the RAM in Atari, of the position of a robot or in a maze.

    Attributes:
        every: Steps between samples: a trajectory has those after steps every, 2 * every, and so on. 0: one sample, at
            the end of the episode.
        samples: Samples per trajectory; where the episode is shorter, its last sample is repeated.
    """

    every: int = 0
    samples: int = 1


def trajectory(every: int, samples: int) -> Behavior:
    """Makes the behavior that the settings trajectory_every and trajectory_samples describe.

    Args:
        every: The setting trajectory_every.
        samples: The setting trajectory_samples.

    Returns:
        The behavior.

    Raises:
        ConfigError: There are several samples, but `every` is 0.
    """
    if not every and samples != 1:
        refuse([Problem("trajectory_samples", "expected 1 where trajectory_every = 0", samples)])
    return Behavior(every, samples)
