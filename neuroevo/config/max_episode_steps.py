"""Cut-off of the episodes in training and validation: a fixed or growing number of steps.

A cut-off has one of three forms, as in Uber's 2018 code:

    max_episode_steps = 5000                             every episode ends after 5000 steps at the latest
    max_episode_steps = "env_default"                    only the environment's own limit
    max_episode_steps = "adaptive:1000,0.5,1.5,20000"    start, fraction, ratio, max: starts at 1000 steps and grows by
                                                         1.5, up to 20000, after each generation in which at least half
                                                         of the population's episodes reached it

Steps are decisions of the network; the cut-off applies to each episode separately. The cut-off also grows if exactly
the given fraction of the episodes reached it; the 2018 code required more than the fraction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuroevo.core.bounds import MAX_COUNT

_EXPECTED = 'expected steps of at least 1, "env_default" or "adaptive:start,fraction,ratio,max"'


@dataclass(frozen=True)
class MaxEpisodeSteps:
    """A parsed cut-off.

    Attributes:
        start: Steps in the first generation; 0 means the environment's own limit.
        fraction: Share of a generation's episodes, in [0, 1], that must reach the cut-off for it to grow.
        ratio: Growth factor, above 1; 1 for a fixed cut-off.
        maximum: Largest cut-off, in steps.
    """

    start: int
    fraction: float = 1.0
    ratio: float = 1.0
    maximum: int = 0

    @property
    def adaptive(self) -> bool:
        """Whether the cut-off can grow."""
        return self.ratio > 1.0

    def following(self, max_episode_steps: int, steps: np.ndarray) -> int:
        """Return the next generation's cut-off.

        Args:
            max_episode_steps: Cut-off of the last generation, in steps.
            steps: Length of each episode of its population in steps, int64 [episodes].

        Returns:
            The same cut-off, or a larger one: its product with `ratio`, rounded to the nearest step, at least one step
            larger and at most `maximum`.
        """
        if not self.adaptive or np.mean(np.asarray(steps) >= max_episode_steps) < self.fraction:
            return max_episode_steps
        product = min(max_episode_steps * self.ratio, self.maximum)  # before rounding: the product may be infinite
        return min(max(round(product), max_episode_steps + 1), self.maximum)


def parse_max_episode_steps(value: object) -> MaxEpisodeSteps:
    """Parse the value of training.max_episode_steps.

    Args:
        value: One of the three forms in the module's docstring.

    Returns:
        The parsed cut-off.

    Raises:
        ValueError: The value is malformed or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(_EXPECTED)
    if isinstance(value, int):
        if value < 1:
            raise ValueError(_EXPECTED)
        if value > MAX_COUNT:
            raise ValueError(f"{_EXPECTED}; steps are at most {MAX_COUNT}")
        return MaxEpisodeSteps(value)
    if value == "env_default":
        return MaxEpisodeSteps(0)
    kind, _, arguments = value.partition(":")
    if kind != "adaptive":
        raise ValueError(_EXPECTED)
    words = arguments.split(",")
    if len(words) != 4:
        raise ValueError(f"{_EXPECTED}; found {len(words)} of 4 numbers after the colon")
    names = ("start", "fraction", "ratio", "max")
    numbers = []
    for name, word in zip(names, words, strict=True):
        try:
            numbers.append(float(word))
        except ValueError:
            raise ValueError(f"{_EXPECTED}; {name} is {word.strip()!r}, not a number") from None
    start, fraction, ratio, maximum = numbers
    if not (start >= 1 and start.is_integer()):
        raise ValueError(f"{_EXPECTED}; start is {start:g}, not a whole number of at least 1")
    if not 0 <= fraction <= 1:
        raise ValueError(f"{_EXPECTED}; fraction is {fraction:g}, not in [0, 1]")
    if not 1 < ratio < float("inf"):
        raise ValueError(f"{_EXPECTED}; ratio is {ratio:g}, not a finite number above 1")
    if not (maximum >= start and maximum.is_integer()):
        raise ValueError(f"{_EXPECTED}; max is {maximum:g}, not a whole number of at least start, {start:g}")
    if maximum > MAX_COUNT:
        raise ValueError(f"{_EXPECTED}; max is {words[3].strip()}, more than {MAX_COUNT}")
    return MaxEpisodeSteps(int(start), fraction, ratio, int(maximum))
