"""The mazes of Lehman and Stanley (2011), a benchmark of novelty search: their names, options and maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from neuroevo.core.behavior import Measure
from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, did_you_mean
from neuroevo.core.settings import Name, settings, whole
from neuroevo.envs.environment import Environment
from neuroevo.system.reading import open_regular

TASKS = {"HardMaze-v0": "hard", "MediumMaze-v0": "medium"}  # name -> its map

LARGEST_MAP = 1 << 20  # bytes; ours have a few hundred
_MAPS = Path(__file__).parent / "maps"
_NUMBERS = {"start": 2, "goal": 2, "wall": 4}  # of a line of a map


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


class Maze(Environment):
    """A maze, which custom_ops/envs/hard_maze plays."""

    family = "hard_maze"
    noun = "mazes"
    continuous_actions = True
    file_option = "map"
    screen_scale = 1
    options_type = HardMazeOptions
    options: HardMazeOptions

    @classmethod
    def names(cls) -> Sequence[str]:
        """Return the two mazes."""
        return list(TASKS)

    @property
    def map(self) -> str:
        """The map that the options name, or the maze's own."""
        return self.options.map or TASKS[self.name]

    @property
    def solved_return(self) -> float | None:
        """Within 5 units of the goal, where episodes of the paper's protocol end; the return is minus the distance."""
        return -5.0 if self.options.protocol == "lehman" else None

    @property
    def image_observations(self) -> bool:
        """Only if the options ask for the maze from above."""
        return self.options.observation == "image"

    @property
    def measures(self) -> Sequence[Measure]:
        """The robot's position, within the outer walls."""
        plan = self.walls
        if plan is None:
            return [Measure("x"), Measure("y")]
        x, y = ([wall[at] for wall in plan["walls"] for at in (axis, axis + 2)] for axis in (0, 1))
        return [Measure("x", min(x), max(x)), Measure("y", min(y), max(y))]

    @property
    def walls(self) -> dict[str, Any] | None:
        """The numbers of the map's file, which the native code reads to play; None if it is not a map."""
        try:
            with open_regular(map_path(self.map)) as file:
                lines = file.read(LARGEST_MAP).decode().splitlines()
            found = [_numbers(line.partition("#")[0].split()) for line in lines]
        except (OSError, ValueError, UserError):
            return None
        of = {key: [numbers for name, numbers in found if name == key] for key in _NUMBERS}
        return {"start": of["start"][0], "goal": of["goal"][0], "walls": of["wall"]} if all(of.values()) else None

    def check(self) -> list[Problem]:
        """Report a missing map."""
        try:
            map_path(self.map)
        except UserError as error:
            return [Problem("env.options.map", str(error), self.map)]
        return []

    def native_options(self) -> Mapping[str, Any]:
        """Name the map by its path. UserError: it is missing."""
        return {**self.values, "map": map_path(self.map)}


def map_path(chosen: str) -> Path:
    """Return the file of a map.

    Args:
        chosen: The name of one in neuroevo/envs/maps, or a path that starts with / . or ~.

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


def _numbers(words: list[str]) -> tuple[str, list[float]]:
    """Return the name and the numbers of a map's line; ValueError: there are too few or too many."""
    if not words or words[0] not in _NUMBERS:
        return "", []
    numbers = [float(word) for word in words[1:]]
    if len(numbers) != _NUMBERS[words[0]]:
        raise ValueError(words)
    return words[0], numbers
