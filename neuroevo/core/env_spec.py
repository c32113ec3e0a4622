"""What the native core makes environments of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnvSpec:
    """What the op EnvPoolMake and the native EnvPool take.

    Attributes:
        name: The environment's full name, to show: "frostbite", "Hopper-v5".
        family: The native family that makes it: "atari", "mujoco", "hard_maze", "gymnasium".
        options: That family's options as texts "key=value".
        retries: Whether an episode may be played again, as what simulates it has failed by chance; results then say how
            often that was.
    """

    name: str
    family: str
    options: tuple[str, ...]
    retries: bool = False
