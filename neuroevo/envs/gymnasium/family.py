"""Any environment of Gymnasium, `gymnasium:CartPole-v1` or `gymnasium:my_module:MyEnv-v0`, in Python processes.

What follows the first colon is what gymnasium.make takes; a module named there registers the environment when it is
imported, from wherever this process would import it or from the current folder. Slower than the families in C++; what
observations and actions become is in neuroevo/envs/gymnasium/spaces.py.

Everything random in an episode must follow from the seed that env.reset gets, the episode's modulo 2**31. The global
generators of `random` and `np.random` are seeded with it too, but a process's environments share them: one that uses
them is reproducible only if it has a process to itself, so with as many `workers` as slots. One that carries something
over from episode to episode is not reproducible.
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
_ALL_BUT_EQUAL = 0.9999  # how alike names are of which one lacks the prefix
_START = "sys.path[:] = sys.argv[1:]; from neuroevo.envs.gymnasium.worker import main; main()"
_SAY_FPS = """
sys.path[:] = sys.argv[3:]
import json
from neuroevo.envs.gymnasium.worker import make_env
env = make_env(sys.argv[1], **json.loads(sys.argv[2]))
print("", float(env.metadata["render_fps"]), sep="\\n")"""
_PLAIN = re.compile(r"\w[\w .+-]*|")  # texts among keywords that can be no path and no module's
_USUAL_FPS = 30.0  # what Gymnasium's own videos take where an environment does not say
_MAX_FPS = 1000


@settings
class GymnasiumOptions:
    """Options of an environment of Gymnasium: the table [env.options] of a configuration."""

    kwargs: dict[str, Any] = field(default_factory=dict)
    """Keywords for gymnasium.make: max_episode_steps and the like, and the environment's own. Videos are made with
    render_mode "rgb_array"."""
    behavior: Annotated[tuple[Annotated[str, Field(pattern=r"^[^\n]+$")], ...], BeforeValidator(listed)] = ()
    """Keys of the environment's `info` whose numbers are the behavior of an episode, for novelty search; each step must
    have them. Empty: nothing is recorded."""
    workers: Threads | None = None
    """Processes that run the environments; one per core, but not more than slots, if it is left out."""
    timeout: Annotated[Positive, Field(le=1e6)] = 300.0
    """Seconds that a reset or a step may take before its process has failed; the start of one may take 300 at least."""
    retries: Annotated[CountOrZero, Field(le=1000)] = 2
    """How often an episode is played again, in a new process, before the run ends: where a process dies or takes too
    long, or the environment raises an exception."""


class GymnasiumEnvironment(Environment):
    """An environment of Gymnasium, which custom_ops/envs/gymnasium has Python processes play.

    Nothing is known of its observations and actions before it is made.
    """

    family = "gymnasium"
    prefix = _PREFIX
    free_options = ("workers", "timeout", "retries")
    retries = True
    tried_at_preflight = False  # it takes processes and seconds
    screen_scale = 1
    options_type = GymnasiumOptions
    options: GymnasiumOptions

    @classmethod
    def nearest(cls, given_name: str) -> tuple[float, str] | None:
        """Return the name with the prefix, if Gymnasium has it: nearer than any but another version of it."""
        return (_ALL_BUT_EQUAL, f"{_PREFIX}{given_name}") if registered(given_name) else None

    @classmethod
    def listing(cls) -> str:
        """Return examples; there are too many to list."""
        return "and any environment of Gymnasium, such as gymnasium:CartPole-v1 or gymnasium:my_module:MyEnv-v0"

    @classmethod
    def named_code(cls, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:
        """Return the module of the name, and keywords that may be paths of files or names of modules."""
        env_id = given_name.strip().removeprefix(_PREFIX)
        found = named_module("env.name", env_id.partition(":")[0]) if ":" in env_id else []
        kwargs = options.get("kwargs")
        for key, value in kwargs.items() if isinstance(kwargs, Mapping) else ():
            odd = [text for text in _texts(value) if not _PLAIN.fullmatch(text)]
            if odd:
                does = f"hands {env_id} {', '.join(map(repr, odd))}, which may name a file or a module"
                found.append(NamedCode(f"env.options.kwargs.{key}", does))
        return found

    @property
    def env_id(self) -> str:
        """The argument of gymnasium.make."""
        return self.name.removeprefix(_PREFIX)

    @property
    def measures(self) -> Sequence[Measure]:
        """The keys of `info` that the options name."""
        return [Measure(key) for key in self.options.behavior]

    @property
    def solved_return(self) -> float | None:
        """The threshold of Gymnasium's registry, if it has the environment and there are no keywords."""
        return None if self.options.kwargs else reward_threshold(self.env_id)

    @property
    def frames_per_s(self) -> float:
        """The environment's metadata["render_fps"]; 30 if it has none, or none that is possible.

        A process of its own makes the environment again for that, as it may depend on keywords.
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
            fps = float(done.stdout.splitlines()[-1])  # the module may print before
        except (subprocess.TimeoutExpired, LookupError, ValueError):
            return _USUAL_FPS
        return fps if 0 < fps <= _MAX_FPS else _USUAL_FPS

    def check(self) -> list[Problem]:
        """Report an unknown id, and keywords that cannot be passed on.

        What a module registers, and which keywords an environment takes, is known to the workers alone.
        """
        bad = [
            Problem(f"env.options.kwargs.{key}", reason, value)
            for key, value in self.options.kwargs.items()
            if (reason := _keyword_problem(key, value)) is not None
        ]
        unknown = _id_problem(self.env_id)
        return [Problem("env.name", unknown, self.given_name), *bad] if unknown else bad

    def native_options(self) -> Mapping[str, Any]:
        """Return the id, its keywords, and the command that starts a worker. UserError: there is no Python."""
        if not sys.executable:
            raise UserError("Gymnasium's environments run in Python processes, but sys.executable names no interpreter")
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
        """Add the keyword render_mode, with which environments have screens."""
        return {**self.given, "kwargs": {"render_mode": "rgb_array", **self.options.kwargs}}

    def _path(self) -> list[str]:
        """Return where a process looks for modules: sys.path, and the current folder if the name has a module."""
        folder = current_folder()
        own = [folder] if ":" in self.env_id else []
        return list(dict.fromkeys([*(entry or folder for entry in sys.path), *own]))


def registered(env_id: str) -> bool:
    """Return whether Gymnasium itself has an environment of that id that is not one of ALE's."""
    import gymnasium

    spec = gymnasium.registry.get(env_id)
    return spec is not None and not str(spec.entry_point).startswith("ale_py")


def _texts(value: object) -> list[str]:
    """Return all texts in a keyword's value."""
    if isinstance(value, Mapping):
        return [text for pair in value.items() for each in pair for text in _texts(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in _texts(each)]
    return [value] if isinstance(value, str) else []


def _keyword_problem(key: str, value: object) -> str | None:
    if key == "id" or not key.isidentifier():
        return "expected a keyword of gymnasium.make other than id"
    try:
        json.dumps(value)
    except TypeError:
        return "expected text, numbers, true or false, and lists and tables of them"
    return None


def _id_problem(env_id: str) -> str | None:
    """Return Gymnasium's message about an unknown id; None for one of a module, which is not imported here."""
    if not env_id:
        return "expected the id of an environment, such as gymnasium:CartPole-v1"
    if ":" in env_id:
        return None
    import gymnasium

    try:
        gymnasium.spec(env_id)
    except gymnasium.error.Error as error:
        return f"{error} (the name of one that a module registers begins with that: gymnasium:my_module:{env_id})"
    return None
