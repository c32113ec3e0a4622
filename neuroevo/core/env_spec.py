"""Specifications from which the native core makes environments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnvSpec:
    """Specification of an environment, as the op EnvPoolMake and the native EnvPool take it.

    Attributes:
        name: The environment's full name, for display: "frostbite", "Hopper-v5".
        family: The native environment family: "atari", "mujoco", "hard_maze" or "gymnasium".
        options: Options of the family as strings "key=value".
        retries: Whether episodes are retried after sporadic failures of the simulator; results then contain the number
            of retries.
    """

    name: str
    family: str
    options: tuple[str, ...]
    retries: bool = False
