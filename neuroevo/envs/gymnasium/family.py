"""Gymnasium environments in Python processes, `gymnasium:CartPole-v1` or `gymnasium:my_module:MyEnv-v0`.

The text after the first colon is the id for gymnasium.make. A module in the id registers the environment when it is
imported, from this process's import path or the current folder. This family is slower than the C++ families. Module
neuroevo/envs/gymnasium/spaces.py describes the conversion of observations and actions.

All randomness of an episode must be derived from the seed passed to env.reset, the episode's seed modulo 2**31. It also
seeds the global generators `random` and `np.random`, but all environments of a process share these: an environment that
uses them is reproducible only with as many `workers` as slots. An environment that keeps state across episodes is not
reproducible.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from neuroevo.core.behavior import Measure
from neuroevo.core.errors import UserError
from neuroevo.core.named_code import NamedCode, named_module
from neuroevo.core.problems import Problem
from neuroevo.core.settings import CountOrZero, Positive, Threads, listed, settings
from neuroevo.core.user_module import current_folder
from neuroevo.envs.environment import Environment
from neuroevo.envs.names import reward_threshold
from neuroevo.system.processes import usable_cores
from neuroevo.system.safe_path import python_command, safe_variables

_PREFIX = "gymnasium:"
_ALL_BUT_EQUAL = 0.9999  # similarity of a name to the same name with the prefix
_START = "sys.path[:] = sys.argv[1:]; from neuroevo.envs.gymnasium.worker import main; main()"
_SAY_FPS = """
sys.path[:] = sys.argv[3:]
import json
from neuroevo.envs.gymnasium.worker import make_env
env = make_env(sys.argv[1], **json.loads(sys.argv[2]))
print("", float(env.metadata["render_fps"]), sep="\\n")"""
_PLAIN = re.compile(r"\w[\w .+-]*|")  # keyword texts that cannot be a path or reference a module
_USUAL_FPS = 30.0  # default of Gymnasium's videos
_MAX_FPS = 1000


@settings
class GymnasiumOptions:
    """Options of a Gymnasium environment: the table [env.options] of a configuration."""

    kwargs: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments for gymnasium.make: its own, such as max_episode_steps, and the environment's. Videos use
    render_mode "rgb_array"."""
    behavior: Annotated[tuple[Annotated[str, Field(pattern=r"^[^\n]+$")], ...], BeforeValidator(listed)] = ()
    """Keys of the environment's `info` whose values form the behavior of an episode, for novelty search; the info of
    every step must contain them. Empty: no behavior is recorded."""
    workers: Threads | None = None
    """Number of worker processes; by default one per core, but not more than slots."""
    timeout: Annotated[Positive, Field(le=1e6)] = 300.0
    """Seconds that a reset or a step may take before its process counts as failed; starting a process may take at least
    300."""
    retries: Annotated[CountOrZero, Field(le=1000)] = 2
    """Number of times that an episode is retried, in a new process, before the run ends. An episode is retried if its
    process dies or times out, or if the environment raises an exception."""


class GymnasiumEnvironment(Environment):
    """Gymnasium environment, run in Python processes by custom_ops/envs/gymnasium.

    Its observation and action spaces are unknown before it is created.
    """

    family = "gymnasium"
    prefix = _PREFIX
    free_options = ("workers", "timeout", "retries")
    retries = True
    tried_at_preflight = False  # starts processes and takes seconds
    screen_scale = 1
    options_type = GymnasiumOptions
    options: GymnasiumOptions

    @classmethod
    def nearest(cls, given_name: str) -> tuple[float, str] | None:
        """Return the name with the prefix if it is registered in Gymnasium, with a similarity of almost 1."""
        return (_ALL_BUT_EQUAL, f"{_PREFIX}{given_name}") if registered(given_name) else None

    @classmethod
    def listing(cls) -> str:
        """Return example names, since there are too many to list."""
        return "and any environment of Gymnasium, such as gymnasium:CartPole-v1 or gymnasium:my_module:MyEnv-v0"

    @classmethod
    def named_code(cls, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:
        """Return the module in the name, and keyword arguments that may be file paths or module names."""
        env_id = given_name.strip().removeprefix(_PREFIX)
        found = named_module("env.name", env_id.partition(":")[0]) if ":" in env_id else []
        kwargs = options.get("kwargs")
        for key, value in kwargs.items() if isinstance(kwargs, Mapping) else ():
            odd = [text for text in _texts(value) if not _PLAIN.fullmatch(text)]
            if odd:
                does = f"passes {', '.join(map(repr, odd))} to {env_id}, which may name a file or a module"
                found.append(NamedCode(f"env.options.kwargs.{key}", does))
        return found

    @property
    def env_id(self) -> str:
        """Id for gymnasium.make."""
        return self.name.removeprefix(_PREFIX)

    @property
    def measures(self) -> Sequence[Measure]:
        """The `info` keys of the option behavior."""
        return [Measure(key) for key in self.options.behavior]

    @property
    def solved_return(self) -> float | None:
        """Reward threshold in Gymnasium's registry, if any; None with keyword arguments."""
        return None if self.options.kwargs else reward_threshold(self.env_id)

    @property
    def frames_per_s(self) -> float:
        """The environment's metadata["render_fps"]; 30 if it is missing or invalid.

        As it may depend on keyword arguments, a separate process creates the environment to read it.
        """
        kwargs = json.dumps(self.render_options()["kwargs"])
        command = [*python_command(_SAY_FPS), self.env_id, kwargs, *self._path()]
        try:
            done = subprocess.run(
                command,
                env={**os.environ, **safe_variables()},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=self.options.timeout,
            )
            fps = float(done.stdout.splitlines()[-1])  # the module may print lines before
        except (subprocess.TimeoutExpired, LookupError, ValueError):
            return _USUAL_FPS
        return fps if 0 < fps <= _MAX_FPS else _USUAL_FPS

    def check(self) -> list[Problem]:
        """Report an unknown id, and keyword arguments that cannot be passed to workers.

        Only the workers can check ids that a module registers, and the environment's keyword arguments.
        """
        bad = [
            Problem(f"env.options.kwargs.{key}", reason, value)
            for key, value in self.options.kwargs.items()
            if (reason := _keyword_problem(key, value)) is not None
        ]
        unknown = _id_problem(self.env_id)
        return [Problem("env.name", unknown, self.given_name), *bad] if unknown else bad

    def native_options(self) -> Mapping[str, Any]:
        """Return the id, the keyword arguments, and the command of a worker. UserError: there is no interpreter."""
        if not sys.executable:
            raise UserError("Gymnasium environments need Python worker processes, but sys.executable is empty")
        return {
            "id": self.env_id,
            "keywords": json.dumps(self.options.kwargs),
            "behavior": "\n".join(self.options.behavior),
            "command": "\n".join([*python_command(_START), *self._path()]),
            "workers": self.options.workers or usable_cores(),
            "timeout": self.options.timeout,
            "retries": self.options.retries,
        }

    def render_options(self) -> Mapping[str, Any]:
        """Add the keyword argument render_mode."""
        return {**self.given, "kwargs": {"render_mode": "rgb_array", **self.options.kwargs}}

    def _path(self) -> list[str]:
        """Return the import path of workers: sys.path, and the current folder if the name contains a module."""
        folder = current_folder()
        own = [folder] if ":" in self.env_id else []
        return list(dict.fromkeys([*(entry or folder for entry in sys.path), *own]))


def registered(env_id: str) -> bool:
    """Return whether Gymnasium's registry contains an environment with an id, ALE's environments excluded."""
    import gymnasium

    spec = gymnasium.registry.get(env_id)
    return spec is not None and not str(spec.entry_point).startswith("ale_py")


def _texts(value: object) -> list[str]:
    """Return all strings in the value of a keyword argument."""
    if isinstance(value, Mapping):
        return [text for pair in value.items() for each in pair for text in _texts(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _keyword_problem(key: str, value: object) -> str | None:
    if key == "id" or not key.isidentifier():
        return "expected a keyword argument of gymnasium.make other than id"
    try:
        json.dumps(value)
    except TypeError:
        return "expected strings, numbers, booleans, and lists and tables of them"
    return None


def _id_problem(env_id: str) -> str | None:
    """Return Gymnasium's message about an unknown id; None for an id with a module, which is not imported here."""
    if not env_id:
        return "expected the id of an environment, such as gymnasium:CartPole-v1"
    if ":" in env_id:
        return None
    import gymnasium

    try:
        gymnasium.spec(env_id)
    except gymnasium.error.Error as error:
        return f"{error} (for an environment that a module registers, use gymnasium:my_module:{env_id})"
    return None
