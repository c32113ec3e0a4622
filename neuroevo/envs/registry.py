"""Environments by the names that users know them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, refuse
from neuroevo.envs.atari import AtariFamily, AtariOptions
from neuroevo.envs.brax import BraxFamily
from neuroevo.envs.environment import Environment, check_options
from neuroevo.envs.family import EnvFamily
from neuroevo.envs.gymnasium.family import GymnasiumFamily
from neuroevo.envs.hard_maze import HardMazeFamily
from neuroevo.envs.mjx import MjxFamily
from neuroevo.envs.mujoco import MujocoFamily
from neuroevo.envs.playground import PlaygroundFamily

# The first that finds a name has it; those with the most environments, which are listed first, are asked last.
FAMILIES: tuple[EnvFamily, ...] = (
    BraxFamily(),
    MjxFamily(),
    PlaygroundFamily(),
    GymnasiumFamily(),
    HardMazeFamily(),
    MujocoFamily(),
    AtariFamily(),
)


def family_of(name: str) -> tuple[EnvFamily, str] | None:
    """The family that has an environment of that name, and the environment's full name; None: there is none."""
    for family in FAMILIES:
        found = family.find(name)
        if found is not None:
            return family, found
    return None


def check(name: str, options: Mapping[str, Any]) -> tuple[Environment | None, list[Problem]]:
    """The environment of a configuration, and all that is wrong with its name and options.

    Native code is not loaded for it; so a mode or a difficulty may still be one that the game lacks.

    Args:
        name: What [env] has as its name.
        options: What [env.options] has.

    Returns:
        The environment, as Environment.checked() says, or None where the name is unknown; and the problems.
    """
    known = family_of(name)
    if known is None:
        unknown = Problem("env.name", f"there is no such environment{_hint(name)}", name)
        return None, [unknown, *check_options(AtariOptions, options)[1]]  # most environments are Atari games
    family, found = known
    return Environment.checked(family, found, name, options)


def find(name: str, options: Mapping[str, Any] | None = None) -> Environment:
    """The environment of that name.

    Args:
        name: Any usual name: of a game frostbite, Frostbite, ALE/Frostbite-v5 or FrostbiteNoFrameskip-v4; of a MuJoCo
            task HalfCheetah-v5, HalfCheetah or half_cheetah; of a maze HardMaze-v0, HardMaze or hard_maze; of any
            environment of Gymnasium gymnasium:CartPole-v1; of one of Brax brax:ant; of a robot of one's own
            mjx:robot.xml.
        options: Its options by name; one that is None counts as left out.

    Raises:
        UserError: There is none; the message has the nearest name.
        ConfigError: Options are wrong, or the ROM, the model or the like is missing; with all problems.
    """
    known = family_of(name)
    if known is None:
        raise UserError(f"environment '{name}' is unknown{_hint(name)}")
    family, found = known
    given = {key: value for key, value in (options or {}).items() if value is not None}
    environment, problems = Environment.checked(family, found, name, given)
    refuse(problems)
    return environment


def resolve(name: str, options: Mapping[str, Any] | None = None) -> EnvSpec:
    """What the native core makes an environment of, for those who ask nothing else: find(...).spec."""
    return find(name, options).spec


def _hint(name: str) -> str:
    """The name that was probably meant, and where all are listed."""
    _, meant = max((near for family in FAMILIES if (near := family.nearest(name))), default=(0.0, ""))
    return f"{f'; did you mean {meant}?' if meant else ''} (`neuroevo info --games` lists the environments)"
