"""When an episode in training or validation is cut off: at a fixed number of steps, or at one that grows.

Three forms, those of Uber's 2018 code:

    max_episode_steps = 5000                             every episode ends after 5000 steps at the latest
    max_episode_steps = "env_default"                    only the environment's own limit
    max_episode_steps = "adaptive:1000,0.5,1.5,20000"    start, fraction, ratio, max: starts at 1000 steps and grows by
                                                         1.5, up to 20000, after each generation in which at least half
                                                         of the population's episodes reached it

Steps are decisions of the network. Each episode counts by itself. The 2018 code wanted more than the fraction of the
episodes to reach the cut-off; here exactly the fraction is enough.
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
        start: Steps in the first generation; 0 is the environment's own limit.
        fraction: The share of episodes, in [0, 1], at which it grows.
        ratio: By how much it grows, above 1; 1 where it does not.
        maximum: The most steps that it grows to.
    """

    start: int
    fraction: float = 1.0
    ratio: float = 1.0
    maximum: int = 0

    @property
    def adaptive(self) -> bool:
        """Whether it can grow."""
        return self.ratio > 1.0

    def following(self, max_episode_steps: int, steps: np.ndarray) -> int:
        """The next generation's cut-off, in steps.

        Where it grows the product is rounded to the nearest step and is at least one more than before.

        Args:
            max_episode_steps: The cut-off of the generation that is over, in steps.
            steps: How many its episodes took, int64 [episodes].
        """
        if not self.adaptive or np.mean(np.asarray(steps) >= max_episode_steps) < self.fraction:
            return max_episode_steps
        product = min(max_episode_steps * self.ratio, self.maximum)  # before rounding: the product may be infinite
        return min(max(round(product), max_episode_steps + 1), self.maximum)


def parse_max_episode_steps(value: object) -> MaxEpisodeSteps:
    """A MaxEpisodeSteps from its configured form.

    Args:
        value: What a configuration says, which may be none of the three forms.

    Raises:
        ValueError: It is none; the message has what was expected and what is wrong.
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
        raise ValueError(f"{_EXPECTED}; there are {len(words)} of 4 numbers after the colon")
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
