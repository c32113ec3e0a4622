"""The behavior of an episode, for novelty search and archives: the numbers that describe it, and when."""

from __future__ import annotations

import math
from dataclasses import dataclass

from neuroevo.core.problems import Problem, refuse


@dataclass(frozen=True)
class Measure:
    """One number of a behavior, which an environment names; an axis of an archive.

    Attributes:
        name: Its name, for labels: "x".
        low: Its lowest possible value; minus infinity if that is unknown.
        high: Its highest possible value; infinity if that is unknown.
    """

    name: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Behavior:
    """Times at which an episode's behavior is sampled; Environment.measures lists the numbers of a sample.

    Attributes:
        every: Steps between samples: a trajectory has those after steps every, 2 * every, and so on. 0: one sample, at
            the end of the episode.
        samples: Samples per trajectory; where the episode is shorter, its last sample is repeated.
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
