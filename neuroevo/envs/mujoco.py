"""MuJoCo tasks: names, and the models shipped with Gymnasium.

The tasks are version v5 of Gymnasium 1.3's tasks, with its keyword arguments as options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from neuroevo.core.behavior import Measure
from neuroevo.core.errors import UserError
from neuroevo.core.named_code import NamedCode, named_model
from neuroevo.core.problems import Problem
from neuroevo.envs.environment import Environment
from neuroevo.envs.mujoco_options import FEET, TASKS
from neuroevo.envs.names import reward_threshold


class MujocoTask(Environment):
    """MuJoCo task, implemented in custom_ops/envs/mujoco. Only version v5 is supported."""

    family = "mujoco"
    noun = "tasks"
    continuous_actions = True
    file_option = "xml_file"
    image_observations = False

    @classmethod
    def names(cls) -> Sequence[str]:
        """Return Gymnasium's names, including the version."""
        return [f"{task}-v5" for task in TASKS]

    @classmethod
    def named_code(cls, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:
        """Return a model that is not one of Gymnasium's, which is any that is not a bare file name."""
        model = options.get("xml_file")
        if not isinstance(model, str) or (Path(model).name == model and not model.startswith(("~", "."))):
            return []
        return named_model("env.options.xml_file", model)

    @property
    def options_type(self) -> type:
        """Class of the task's options."""
        return TASKS[self.name.removesuffix("-v5")]

    @property
    def robot_model(self) -> Path:
        """Path of the robot's model."""
        return model_path(self.options.xml_file)

    @property
    def measures(self) -> Sequence[Measure]:
        """Position of the robot, or the fraction of steps in which each foot touches the ground."""
        feet = [Measure(f"contact of {foot.removesuffix('_geom').replace('_', ' ')}", 0, 1) for foot in self._feet()]
        return feet or [Measure("x"), Measure("y")]

    @property
    def solved_return(self) -> float | None:
        """Reward threshold in Gymnasium's registry; None unless all options have their defaults."""
        return None if self.values else reward_threshold(self.name)

    def check(self) -> list[Problem]:
        """Report a missing model of the robot."""
        try:
            model_path(self.options.xml_file)
        except UserError as error:
            return [Problem("env.options.xml_file", str(error), self.options.xml_file)]
        return []

    def native_options(self) -> Mapping[str, Any]:
        """Return the options with the task and the model's path. UserError: the model is missing."""
        given = {key: value for key, value in self.values.items() if key not in ("xml_file", "behavior")}
        feet = {"feet": "\n".join(self._feet())} if self._feet() else {}
        return {"task": self.name.removesuffix("-v5"), "model": self.robot_model, **given, **feet}

    def _feet(self) -> Sequence[str]:
        """Return the geoms whose ground contact is the behavior; () if the behavior is the position."""
        return FEET[self.name.removesuffix("-v5")] if self.values.get("behavior") == "contact" else ()


def model_path(xml_file: str) -> Path:
    """Return the path of a robot's model, resolved as Gymnasium does.

    Args:
        xml_file: Name of a model shipped with Gymnasium, or a path that starts with / . or ~.

    Raises:
        UserError: There is no such model.
    """
    try:
        path = Path(xml_file).expanduser().resolve() if xml_file.startswith((".", "/", "~")) else _asset(xml_file)
        found = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # no permission, unknown home folder, invalid file name
        raise UserError(f"the MuJoCo model '{xml_file}' cannot be used: {error}") from None
    if not found:
        raise UserError(f"the MuJoCo model '{xml_file}' cannot be used: there is no {path}")
    return path


def _asset(name: str) -> Path:
    """Return the path of a model shipped with Gymnasium. UserError: Gymnasium is not installed."""
    gymnasium = find_spec("gymnasium")
    folders = gymnasium.submodule_search_locations if gymnasium is not None else None
    if not folders:
        raise UserError("the MuJoCo models come with gymnasium, which is not installed")
    return Path(folders[0], "envs", "mujoco", "assets", name)
