"""Mazes of Lehman and Stanley (2011), a benchmark of novelty search: names, options and maps."""

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

TASKS = {"HardMaze-v0": "hard", "MediumMaze-v0": "medium"}  # name -> map

LARGEST_MAP = 1 << 20  # bytes; the included maps have a few hundred
_MAPS = Path(__file__).parent / "maps"
_NUMBERS = {"start": 2, "goal": 2, "wall": 4}  # values per line of a map


@settings
class HardMazeOptions:
    """Options of the mazes: the table [env.options] of a configuration."""

    map: Name | None = None
    """Map to use: hard, medium, or the path of a file in the same format (see neuroevo/envs/maps), starting with / . or
    ~; by default the map of the environment's name."""
    protocol: Literal["lehman", "uber"] = "lehman"
    """Effect of actions and end of episodes. lehman, as in the paper: an action changes turn rate and speed by up to
    0.5, and an episode ends within 5 units of the goal. uber, as in the code of arXiv 1712.06567: an action sets a
    target turn rate and speed, up to 3, approached by up to 0.2 per step, and an episode continues at the goal."""
    observation: Literal["sensors", "image"] = "sensors"
    """Type of observations: sensors, float32 [11], are a constant 1, six rangefinders and the quadrant of the goal;
    image, uint8 [84, 84, 4], is the last four frames of a top view of the maze."""
    max_episode_steps: Annotated[int, BeforeValidator(whole), Field(ge=1, le=100_000)] = 400
    """Steps after which an episode is cut off."""


class Maze(Environment):
    """Maze, implemented in custom_ops/envs/hard_maze."""

    family = "hard_maze"
    noun = "mazes"
    continuous_actions = True
    file_option = "map"
    screen_scale = 1
    options_type = HardMazeOptions
    options: HardMazeOptions

    @classmethod
    def names(cls) -> Sequence[str]:
        """Return the names of the two mazes."""
        return list(TASKS)

    @property
    def map(self) -> str:
        """Map of the options, by default that of the environment's name."""
        return self.options.map or TASKS[self.name]

    @property
    def solved_return(self) -> float | None:
        """Return at 5 units from the goal, where episodes of protocol "lehman" end; returns are negative distances."""
        return -5.0 if self.options.protocol == "lehman" else None

    @property
    def image_observations(self) -> bool:
        """True with observation = "image"."""
        return self.options.observation == "image"

    @property
    def measures(self) -> Sequence[Measure]:
        """Position of the robot, bounded by the outer walls."""
        plan = self.walls
        if plan is None:
            return [Measure("x"), Measure("y")]
        x, y = ([wall[at] for wall in plan["walls"] for at in (axis, axis + 2)] for axis in (0, 1))
        return [Measure("x", min(x), max(x)), Measure("y", min(y), max(y))]

    @property
    def walls(self) -> dict[str, Any] | None:
        """Start, goal and walls of the map file, which the native code also reads; None if the map is invalid."""
        try:
            with open_regular(map_path(self.map)) as file:
                lines = file.read(LARGEST_MAP).decode().splitlines()
            found = [_numbers(line.partition("#")[0].split()) for line in lines]
        except (OSError, ValueError, UserError):
            return None
        of = {key: [numbers for name, numbers in found if name == key] for key in _NUMBERS}
        return {"start": of["start"][0], "goal": of["goal"][0], "walls": of["wall"]} if all(of.values()) else None

    def check(self) -> list[Problem]:
        """Report a missing or oversized map."""
        try:
            map_path(self.map)
        except UserError as error:
            return [Problem("env.options.map", str(error), self.map)]
        return []

    def native_options(self) -> Mapping[str, Any]:
        """Return the options with the path of the map. UserError: the map is missing."""
        return {**self.values, "map": map_path(self.map)}


def map_path(chosen: str) -> Path:
    """Return the path of a map.

    Args:
        chosen: Name of a map in neuroevo/envs/maps, or a path that starts with / . or ~.

    Raises:
        UserError: There is no such map, or it has more than LARGEST_MAP bytes.
    """
    if not chosen.startswith((".", "/", "~")):
        known = sorted(TASKS.values())
        if chosen not in known:
            raise UserError(
                f"there is no such map{did_you_mean(chosen, known)}, expected {', '.join(known)} "
                "or a path that starts with / . or ~"
            )
        return _MAPS / f"{chosen}.txt"
    try:
        path = Path(chosen).expanduser().resolve()
        size = path.stat().st_size if path.is_file() else None
    except (OSError, RuntimeError, ValueError) as error:  # no permission, unknown home folder, invalid file name
        raise UserError(f"the map cannot be used: {error}") from None
    if size is None:
        raise UserError(f"the map cannot be used: there is no {path}")
    if size > LARGEST_MAP:
        raise UserError(f"the map cannot be used: {path} has {size:,} bytes, expected at most {LARGEST_MAP:,}")
    return path


def _numbers(words: list[str]) -> tuple[str, list[float]]:
    """Parse a line of a map to its keyword and values. ValueError: there are too few or too many values."""
    if not words or words[0] not in _NUMBERS:
        return "", []
    numbers = [float(word) for word in words[1:]]
    if len(numbers) != _NUMBERS[words[0]]:
        raise ValueError(words)
    return words[0], numbers
