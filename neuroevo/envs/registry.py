"""Registry of environments: lookup by any of the names that users write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, nearest, refuse
from neuroevo.envs.atari import AtariGame
from neuroevo.envs.brax import BraxEnvironment
from neuroevo.envs.environment import Environment
from neuroevo.envs.gymnasium.family import GymnasiumEnvironment
from neuroevo.envs.hard_maze import Maze
from neuroevo.envs.mjx import MjxRobot
from neuroevo.envs.mujoco import MujocoTask
from neuroevo.envs.playground import PlaygroundTask

# The first family that finds a name is used. `neuroevo info` lists them in reverse, the largest families first.
FAMILIES: tuple[type[Environment], ...] = (
    *(BraxEnvironment, MjxRobot, PlaygroundTask, GymnasiumEnvironment),
    *(Maze, MujocoTask, AtariGame),
)


def family_of(name: str) -> tuple[type[Environment], str] | None:
    """Return the family and the full name of the environment with a name; None if no family contains it."""
    for family in FAMILIES:
        found = family.find(name)
        if found is not None:
            return family, found
    return None


def check(name: str, options: Mapping[str, Any]) -> tuple[Environment | None, list[Problem]]:
    """Return the environment of a configuration, and all problems with its name and options.

    This does not load native code; so modes and difficulties that the game does not have are not reported.

    Args:
        name: The name in [env].
        options: The table [env.options].

    Returns:
        The environment, or None if the name is unknown; and the problems. The options of an unknown name are checked
        against the environment with the most similar name.
    """
    known = family_of(name)
    if known is None:
        meant = _nearest(name)
        problems = [Problem("env.name", f"there is no such environment{_hint(name, meant)}", name)]
        if meant is not None:
            family, found = meant
            problems += [each for each in family(found, found, options).problems if each.key != "env.name"]
        return None, problems
    family, found = known
    environment = family(found, name, options)
    return environment, environment.problems


def find(name: str, options: Mapping[str, Any] | None = None) -> Environment:
    """Return the environment with a name.

    Args:
        name: Any common form of the name: frostbite, Frostbite, ALE/Frostbite-v5 or FrostbiteNoFrameskip-v4 for a game;
            HalfCheetah-v5, HalfCheetah or half_cheetah for a MuJoCo task; HardMaze-v0, HardMaze or hard_maze for a
            maze; gymnasium:CartPole-v1 for any Gymnasium environment; brax:ant for a Brax environment; mjx:robot.xml
            for a user-defined robot.
        options: Options by name; those that are None are ignored.

    Raises:
        UserError: The name is unknown; the message suggests the most similar name.
        ConfigError: Options are invalid, or a resource such as the ROM or the model is missing; with all problems.
    """
    known = family_of(name)
    if known is None:
        raise UserError(f"environment '{name}' is unknown{_hint(name, _nearest(name))}")
    family, found = known
    environment = family(found, name, {key: value for key, value in (options or {}).items() if value is not None})
    refuse(environment.problems)
    return environment


def resolve(name: str, options: Mapping[str, Any] | None = None) -> EnvSpec:
    """Return the specification of an environment for the native core: find(...).spec."""
    return find(name, options).spec


def _nearest(name: str) -> tuple[type[Environment], str] | None:
    """Return the family and the full name of the environment whose name is most similar to an unknown name."""
    found = [(*near, family) for family in FAMILIES if (near := family.nearest(name)) is not None]
    if not found:
        return None
    _, meant, family = max(found, key=lambda each: each[0])
    return family, meant


def _hint(name: str, meant: tuple[type[Environment], str] | None) -> str:
    """Format a suggestion for an unknown name, in the same form, and how to list all environments."""
    hint = ""
    if meant is not None:
        family, found = meant
        forms = [found, *(known for known in family.gymnasium_ids().values() if family.find(known) == found)]
        hint = f"; did you mean {nearest(name, forms) or found}?"
    return f"{hint} (`neuroevo info --games` lists the environments)"
