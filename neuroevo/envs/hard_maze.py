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
from neuroevo.envs.family import EnvFamily
from neuroevo.envs.names import key_of, nearest_of, option_text

TASKS = {"HardMaze-v0": "hard", "MediumMaze-v0": "medium"}  # name -> its map

LARGEST_MAP = 1 << 20  # bytes; ours have a few hundred
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


class HardMazeFamily(EnvFamily):
    """The mazes, which custom_ops/envs/hard_maze plays; EnvFamily says what the methods mean."""

    name = "hard_maze"
    continuous_actions = True
    file_option = "map"

    def find(self, given_name: str) -> str | None:
        """The maze of that name: HardMaze-v0, HardMaze, hard_maze, hardmaze."""
        return _tasks_by_key().get(_bare_key(given_name))

    def nearest(self, given_name: str) -> tuple[float, str] | None:
        """The maze whose name is most like it."""
        return nearest_of(_bare_key(given_name), _tasks_by_key())

    def options_type(self, name: str) -> type:  # noqa: ARG002 - the options of all mazes are the same
        """The class of the maze's options."""
        return HardMazeOptions

    def solved_return(self, name: str, options: Mapping[str, Any]) -> float | None:  # noqa: ARG002
        """Within 5 units of the goal, where episodes of the paper's protocol end; the return is minus the distance."""
        return -5.0 if HardMazeOptions(**options).protocol == "lehman" else None

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        """The map may be missing."""
        chosen = options.get("map") or TASKS[name]
        try:
            map_path(chosen)
        except UserError as error:
            return [Problem("env.options.map", str(error), chosen)]
        return []

    def native_options(self, name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The map's path and the options. UserError: the map is missing."""
        given = {key: value for key, value in options.items() if key != "map"}
        texts = (f"{key}={option_text(value)}" for key, value in given.items())
        return (f"map={map_path(options.get('map') or TASKS[name])}", *texts)

    def image_observations(self, options: Mapping[str, Any]) -> bool:
        """Only where the options ask for the maze from above."""
        return options.get("observation") == "image"

    def listing(self) -> str:
        """The mazes."""
        return f"mazes ({len(TASKS)}): {', '.join(TASKS)}"

    def gymnasium_ids(self) -> Mapping[str, str]:
        """Their own names: HardMaze-v0."""
        return {name: name for name in TASKS}


def map_path(chosen: str) -> Path:
    """The file of a map.

    Args:
        chosen: One of ours by its name, or a path that begins with / . or ~.

    Raises:
        UserError: There is none, or it has more than LARGEST_MAP bytes.
    """
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
        size = path.stat().st_size if path.is_file() else None
    except (OSError, RuntimeError, ValueError) as error:  # no permission, no such user's home, no file's name at all
        raise UserError(f"the map cannot be used: {error}") from None
    if size is None:
        raise UserError(f"the map cannot be used: there is no {path}")
    if size > LARGEST_MAP:
        raise UserError(f"the map cannot be used: {path} has {size:,} bytes, expected at most {LARGEST_MAP:,}")
    return path


def _tasks_by_key() -> dict[str, str]:
    return {_bare_key(task): task for task in TASKS}


def _bare_key(name: str) -> str:
    """The key of a name without its version."""
    return key_of(re.sub(r"-v0$", "", name.strip()))
