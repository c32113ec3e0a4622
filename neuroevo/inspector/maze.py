"""The walls of a maze, to draw them behind the ends of episodes. The native code reads the same files to play."""

from __future__ import annotations

from typing import Any

from neuroevo.core.errors import UserError
from neuroevo.envs.environment import Environment
from neuroevo.envs.hard_maze import LARGEST_MAP, TASKS, map_path
from neuroevo.system.reading import open_regular

_KEYS = {"start": 2, "goal": 2, "wall": 4}  # how many numbers a line has


def maze(environment: Environment) -> dict[str, Any] | None:
    """Reads the map of an environment.

    Args:
        environment: Any.

    Returns:
        Lists of numbers: start and goal [x, y], and walls [x0, y0, x1, y1]; None where it is no maze, or its map
        cannot be read.
    """
    if environment.family.name != "hard_maze":
        return None
    try:
        path = map_path(environment.values.get("map") or TASKS[environment.name])
        with open_regular(path) as file:
            lines = file.read(LARGEST_MAP).decode().splitlines()
        found = [_numbers(line.partition("#")[0].split()) for line in lines]
    except (OSError, ValueError, UserError):
        return None
    of = {key: [numbers for name, numbers in found if name == key] for key in _KEYS}
    if not all(of.values()):
        return None
    return {"start": of["start"][0], "goal": of["goal"][0], "walls": of["wall"]}


def _numbers(words: list[str]) -> tuple[str, list[float]]:
    """The name and the numbers of a line; ValueError: there are too few."""
    if not words or words[0] not in _KEYS:
        return "", []
    numbers = [float(word) for word in words[1:]]
    if len(numbers) != _KEYS[words[0]]:
        raise ValueError(words)
    return words[0], numbers
