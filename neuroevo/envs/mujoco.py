"""The MuJoCo tasks: their names, and the models that Gymnasium brings for them.

The tasks are version v5 of Gymnasium 1.3's, and their options its keywords.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from neuroevo.core.errors import UserError
from neuroevo.core.named_code import NamedCode, named_model
from neuroevo.core.problems import Problem
from neuroevo.envs.family import EnvFamily
from neuroevo.envs.mujoco_options import TASKS
from neuroevo.envs.names import key_of, nearest_of, option_text, reward_threshold


class MujocoFamily(EnvFamily):
    """The MuJoCo tasks, which custom_ops/envs/mujoco plays; EnvFamily says what the methods mean."""

    name = "mujoco"
    continuous_actions = True
    file_option = "xml_file"

    def find(self, given_name: str) -> str | None:
        """The task of that name: HalfCheetah-v5, HalfCheetah, half_cheetah. Other versions are other tasks."""
        return _tasks_by_key().get(key_of(re.sub(r"-v5$", "", given_name.strip())))

    def nearest(self, given_name: str) -> tuple[float, str] | None:
        """The task whose name is most like it, whatever the version."""
        return nearest_of(key_of(re.sub(r"-v\d+$", "", given_name.strip())), _tasks_by_key())

    def options_type(self, name: str) -> type:
        """The class of the task's options."""
        return TASKS[name.removesuffix("-v5")]

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        """The robot's model may be missing."""
        xml_file = self._model(name, options)
        try:
            model_path(xml_file)
        except UserError as error:
            return [Problem("env.options.xml_file", str(error), xml_file)]
        return []

    def native_options(self, name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The task, the model's path and the options. UserError: the model is missing."""
        given = {key: value for key, value in options.items() if key != "xml_file"}
        texts = (f"{key}={option_text(value)}" for key, value in given.items())
        return (f"task={name.removesuffix('-v5')}", f"model={model_path(self._model(name, options))}", *texts)

    def robot_model(self, name: str, options: Mapping[str, Any]) -> Path:
        """The task's model, or that of the user's own."""
        return model_path(self._model(name, options))

    def solved_return(self, name: str, options: Mapping[str, Any]) -> float | None:
        """What Gymnasium's registry demands of the task as it is there, without options."""
        return None if options else reward_threshold(name)

    def image_observations(self, options: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """What a network sees are always numbers."""
        return False

    def listing(self) -> str:
        """The tasks."""
        return f"tasks ({len(TASKS)}): {', '.join(f'{task}-v5' for task in TASKS)}"

    def gymnasium_ids(self) -> Mapping[str, str]:
        """As Gymnasium has them: HalfCheetah-v5."""
        return {f"{task}-v5": f"{task}-v5" for task in TASKS}

    def named_code(self, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:  # noqa: ARG002
        """A model that is not one of Gymnasium's: any that is not a file's bare name."""
        model = options.get("xml_file")
        if not isinstance(model, str) or (Path(model).name == model and not model.startswith(("~", "."))):
            return []
        return named_model("env.options.xml_file", model)

    def _model(self, name: str, options: Mapping[str, Any]) -> str:
        """The model that options name, or the task's own."""
        return options.get("xml_file", self.options_type(name)().xml_file)


@functools.cache
def _tasks_by_key() -> dict[str, str]:
    return {key_of(task): f"{task}-v5" for task in TASKS}


def model_path(xml_file: str) -> Path:
    """The file of a robot's model, found as Gymnasium does.

    Args:
        xml_file: The name of one of Gymnasium's own, or a path that begins with / . or ~.

    Raises:
        UserError: There is none.
    """
    try:
        path = Path(xml_file).expanduser().resolve() if xml_file.startswith((".", "/", "~")) else _asset(xml_file)
        found = path.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # no permission, no such user's home, no file's name at all
        raise UserError(f"the MuJoCo model '{xml_file}' cannot be used: {error}") from None
    if not found:
        raise UserError(f"the MuJoCo model '{xml_file}' cannot be used: there is no {path}")
    return path


def _asset(name: str) -> Path:
    """Where Gymnasium would keep a model of that name. UserError: there is no Gymnasium."""
    gymnasium = find_spec("gymnasium")
    folders = gymnasium.submodule_search_locations if gymnasium is not None else None
    if not folders:
        raise UserError("the MuJoCo models come with gymnasium, which is not installed")
    return Path(folders[0], "envs", "mujoco", "assets", name)
