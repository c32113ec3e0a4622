"""The mazes of Lehman and Stanley (2011), on which novelty search is tried: their names, options and maps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, did_you_mean
from neuroevo.core.settings import Name, settings, whole
from neuroevo.envs.names import key_of, option_text

FAMILY = "hard_maze"
VECTOR = True  # actions are vectors
FILE = "map"  # the option that may be the path of a file
TASKS = {"HardMaze-v0": "hard", "MediumMaze-v0": "medium"}  # name -> its map

_MAPS = Path(__file__).parent / "maps"


@settings
class HardMazeOptions:
    """Options of the mazes: the table [env.options] of a configuration."""

    map: Name | None = None
    """Another map: hard, medium, or the path of a file like theirs (neuroevo/envs/maps), beginning with / . or ~."""
    protocol: Literal["lehman", "uber"] = "lehman"
    """What actions do and what ends an episode. lehman, as in the paper: an action changes turn and speed by up to 0.5,
    and an episode ends within 5 units of the goal. uber, as in the code of arXiv 1712.06567: an action says which turn
    and speed, up to 3, to approach by up to 0.2 a step, and an episode goes on at the goal."""
    observation: Literal["sensors", "image"] = "sensors"
    """What a network sees: float32 [11], which are 1, six rangefinders, and in which quarter the goal is; or uint8
    [84, 84, 4], the last four frames of the maze from above."""
    max_episode_steps: Annotated[int, BeforeValidator(whole), Field(ge=1, le=100_000)] = 400
    """Steps after which an episode is cut off."""


def screens(options: Mapping[str, Any]) -> bool:
    """Whether observations are images, with these of [env.options], which need not be right."""
    return options.get("observation") == "image"


def find(name: str) -> str | None:
    """The maze of that name: HardMaze-v0, HardMaze, hard_maze, hardmaze."""
    return _tasks_by_key().get(_bare_key(name))


def near(name: str) -> tuple[str, Mapping[str, str]]:
    """For suggestions: what of the name to compare, and the known names by what to compare them by."""
    return _bare_key(name), _tasks_by_key()


def options_of(task: str) -> type:  # noqa: ARG001 - the options of all mazes are the same
    """The class of the maze's options."""
    return HardMazeOptions


def problems(task: str, given_name: str, values: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG001
    """What else is wrong, of a maze that was found and options that are right by themselves."""
    chosen = values.get("map") or TASKS[task]
    try:
        map_path(chosen)
    except UserError as error:
        return [Problem("env.options.map", str(error), chosen)]
    return []


def native_options(task: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """What the native family takes, from options that HardMazeOptions has checked. UserError: the map is missing."""
    given = {name: value for name, value in values.items() if name != "map"}
    texts = (f"{name}={option_text(value)}" for name, value in given.items())
    return (f"map={map_path(values.get('map') or TASKS[task])}", *texts)


def map_path(chosen: str) -> Path:
    """The map's file: one of ours by its name, or a path that begins with / . or ~. UserError: there is none."""
    if not chosen.startswith((".", "/", "~")):
        known = sorted(TASKS.values())
        if chosen not in known:
            raise UserError(
                f"there is no such map{did_you_mean(chosen, known)}, expected {', '.join(known)} "
                "or a path that begins with / . or ~"
            )
        return _MAPS / f"{chosen}.txt"
    try:
        path = Path(chosen).expanduser().resolve()
        found = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # no permission, no such user's home, no file's name at all
        raise UserError(f"the map cannot be used: {error}") from None
    if not found:
        raise UserError(f"the map cannot be used: there is no {path}")
    return path


def _tasks_by_key() -> dict[str, str]:
    return {_bare_key(task): task for task in TASKS}


def _bare_key(name: str) -> str:
    """The key of a name without its version."""
    return key_of(re.sub(r"-v0$", "", name.strip()))
