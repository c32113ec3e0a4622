"""The behavior of an episode, for novelty search and quality diversity: its numbers and their sampling times."""

from __future__ import annotations

import math
from dataclasses import dataclass

from neuroevo.core.problems import Problem, refuse


@dataclass(frozen=True)
class Measure:
    """Description of one number of an environment's behavior, which is an axis of an archive.

    Attributes:
        name: Name of the number for labels, such as "x".
        low: Lower bound; minus infinity if it is unknown.
        high: Upper bound; infinity if it is unknown.
    """

    name: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Behavior:
    """Times at which an episode's behavior is sampled; Environment.measures lists the numbers of a sample.

    Attributes:
        every: Steps between samples: a trajectory is sampled after steps every, 2 * every, and so on; 0: one sample at
            the end of the episode.
        samples: Samples per trajectory; in shorter episodes the last sample is repeated.
    """

    every: int = 0
    samples: int = 1


def trajectory(every: int, samples: int) -> Behavior:
    """Make the behavior that the settings trajectory_every and trajectory_samples describe.

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
