"""Base class of environments: each subclass is a family, each instance an environment with its options.

To add a family, write a subclass in a new module, list it in registry.FAMILIES, and implement the environments in
custom_ops/envs.
"""

from __future__ import annotations

import hashlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from neuroevo.core.behavior import Measure
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.named_code import NamedCode
from neuroevo.core.problems import ConfigError, Problem, did_you_mean, nearest, problems_of, refuse
from neuroevo.envs.names import key_of, option_text
from neuroevo.system.reading import read_regular

_VERSION = re.compile(r"-v\d+$")


@dataclass(frozen=True)
class UserFile:
    """User file that an environment is created from, such as a maze's map.

    Attributes:
        option: Option of [env.options] that contains the path.
        path: Absolute path of the file.
    """

    option: str
    path: Path

    def sha256(self) -> str:
        """Return the SHA-256 sum of the file's current contents, in hexadecimal digits.

        Raises:
            ConfigError: The file cannot be read.
        """
        try:
            return hashlib.sha256(read_regular(self.path)).hexdigest()
        except OSError as error:
            reason = f"cannot read {self.path}: {error.strerror}"
            raise ConfigError([Problem(f"env.options.{self.option}", reason)]) from None


class Environment(ABC):
    """Environment and its options; registry.find() creates it without loading native code.

    The first group of attributes describes the family and is set by subclasses. A subclass overrides properties and
    methods whose defaults do not fit; a class attribute may override a property.

    Attributes:
        family: Name of the family in the native code.
        noun: Plural noun for the family's environments in `neuroevo info`, such as "games".
        prefix: Prefix of the names of a family that accepts any name with it, such as "gymnasium:".
        continuous_actions: Whether an action is a vector of numbers; None if unknown before an environment is created.
        file_option: Option that may be the path of a user's file, on whose contents results depend. Its value is a path
            if it starts with / . or ~, otherwise a name.
        free_options: Options that do not affect results.
        retries: Whether episodes may be retried; see EnvSpec.retries.
        tried_at_preflight: Whether to create an environment before a run starts, as a test; only if that takes well
            below a second.
        simulator: Module that simulates the family on the accelerator, together with the networks, and defines
            make_simulator(environment), such as "neuroevo.accelerated.brax_simulator"; "" for the native core.
        screen_scale: Magnification at which a screen is large enough to watch.

        name: Full name of the environment, such as "frostbite".
        given_name: Name of the environment in the configuration, such as "ALE/Frostbite-v5".
        given: The given options as recorded by a run, with the absolute path of a user's file.
        options: All options, an instance of options_type; an invalid option has its default value.
        values: The given options that are valid and not None, with their values in `options`.
        problems: Problems with the name and options. If there are any, only use attributes derived from these.
    """

    family: ClassVar[str]
    noun: ClassVar[str] = "environments"
    prefix: ClassVar[str] = ""
    continuous_actions: ClassVar[bool | None] = None
    file_option: ClassVar[str | None] = None
    free_options: ClassVar[Sequence[str]] = ()
    retries: ClassVar[bool] = False
    tried_at_preflight: ClassVar[bool] = True
    simulator: ClassVar[str] = ""
    screen_scale: ClassVar[int] = 2

    def __init__(self, name: str, given_name: str, options: Mapping[str, Any]) -> None:
        """Check the options.

        Args:
            name: Full name of the environment, as returned by find().
            given_name: Name of the environment in the configuration.
            options: The table [env.options] of the configuration.
        """
        self.name, self.given_name = name, given_name
        self.given: Mapping[str, Any] = {**self.named_options(given_name), **options}
        self.options, valid, wrong = _checked(self.options_type, self.given)
        self.values = {key: value for key in valid if (value := getattr(self.options, key)) is not None}
        self.problems = [*self.check(), *wrong]
        if not self.problems and self.file is not None:
            self.given = {**self.given, self.file.option: str(self.file.path)}

    @classmethod
    def names(cls) -> Sequence[str]:
        """Return the full names of the family's environments; empty if they cannot be listed."""
        return ()

    @classmethod
    def key(cls, given_name: str) -> str:
        """Return the lookup key of a name: its letters and digits, without the version."""
        return key_of(_VERSION.sub("", given_name.strip()))

    @classmethod
    def find(cls, given_name: str) -> str | None:
        """Return the full name of the environment with a given name; None if the family has no such environment."""
        given = given_name.strip()
        if cls.prefix:
            return given if given.startswith(cls.prefix) else None
        name, version = cls._by_key().get(cls.key(given)), _VERSION.search(given)
        return None if name is None or (version and not name.endswith(version[0])) else name

    @classmethod
    def nearest(cls, given_name: str) -> tuple[float, str] | None:
        """Return the environment whose name is most similar to an unknown name.

        Returns:
            The similarity of the names from 0 to 1, ignoring versions, and the full name; None without a similar name.
        """
        key, known = cls.key(given_name), cls._by_key()
        close = nearest(key, known)
        return None if close is None else (SequenceMatcher(None, key, close).ratio(), known[close])

    @classmethod
    def listing(cls) -> str:
        """Return the family's environments on one line, for `neuroevo info`."""
        return f"{cls.noun} ({len(cls.names())}): {', '.join(cls.names())}"

    @classmethod
    def gymnasium_ids(cls) -> Mapping[str, str]:
        """Return the mapping of ids in Gymnasium's registry, without "neuroevo/", to names for find()."""
        return {} if cls.prefix else {name: name for name in cls.names()}

    @classmethod
    def named_options(cls, given_name: str) -> Mapping[str, Any]:
        """Return the options implied by the name; given options override them."""
        return {}

    @classmethod
    def named_code(cls, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:
        """Return the external code and files that a name and options reference, without loading any of it.

        Args:
            given_name: Name of the environment in the configuration.
            options: Options of the environment, which may be invalid.
        """
        return []

    @classmethod
    @cache
    def _by_key(cls) -> dict[str, str]:
        return {cls.key(name): name for name in cls.names()}

    @property
    @abstractmethod
    def options_type(self) -> type:
        """Class of the options, decorated with neuroevo.core.settings.settings."""

    def check(self) -> list[Problem]:
        """Return the problems of the environment other than the types and ranges of its options."""
        return []

    def native_options(self) -> Mapping[str, Any]:
        """Return the options for the native code.

        Raises:
            UserError: A resource of the environment is missing, such as a game's ROM.
        """
        return self.values

    @property  # not cached_property: its lock, shared by all objects, could stay locked in a fork
    def spec(self) -> EnvSpec:
        """Specification for the native core. UserError: a resource is missing, such as a game's ROM."""
        options = tuple(f"{key}={option_text(value)}" for key, value in self.native_options().items())
        return EnvSpec(self.name, self.family, options, self.retries)

    @property
    def accelerated(self) -> bool:
        """Whether the environment runs on the accelerator, in neuroevo/accelerated instead of the native core."""
        return bool(self.simulator)

    @property
    def title(self) -> str:
        """Name in tables and folder names: the given name if it implies options, otherwise the full name."""
        return self.given_name.strip().replace("/", "-") if self.named_options(self.given_name) else self.name

    @property
    def rules(self) -> str:
        """Description of the evaluation protocol, if the name leaves it open; otherwise ""."""
        return ""

    @property
    def image_observations(self) -> bool | None:
        """Whether observations are uint8 images; None if unknown before an environment is created."""
        return None

    @property
    def measures(self) -> Sequence[Measure]:
        """Behavior measures for novelty search and archives, in order; () without a behavior."""
        return ()

    @property
    def solved_return(self) -> float | None:
        """Mean return at which the environment counts as solved; None without an agreed threshold."""
        return None

    @property
    def robot_model(self) -> Path | None:
        """MuJoCo model for rendering the environment's states; None without a model. UserError: it is missing."""
        return None

    @property
    def frames_per_s(self) -> float | None:
        """Steps per second of real time; None for 60 Hz divided by the frame skip."""
        return None

    @property
    def walls(self) -> dict[str, Any] | None:
        """Map to draw behind positions: start and goal [x, y], walls [x0, y0, x1, y1]; None without a map."""
        return None

    @property
    def file(self) -> UserFile | None:
        """User file that the environment is created from; None without one."""
        given = self.given.get(self.file_option) if self.file_option is not None else None
        if self.file_option is None or not isinstance(given, str) or not given.startswith(("/", ".", "~")):
            return None
        return UserFile(self.file_option, Path(os.path.expanduser(given)).resolve())

    def settings(self) -> dict[str, Any]:
        """Return the family, name, and all options including defaults, for a run's record."""
        return {"family": self.family, "name": self.name, **asdict(self.options)}

    def result_options(self) -> dict[str, Any]:
        """Return the options that results depend on.

        Returns:
            "options", without free_options; and "file", the SHA-256 sum of the user's file, instead of the option that
            contains its path.

        Raises:
            ConfigError: The file cannot be read.
        """
        kept = {key: value for key, value in self.given.items() if key not in self.free_options}
        if self.file is None:
            return {"options": kept}
        del kept[self.file.option]
        return {"options": kept, "file": self.file.sha256()}

    def check_file(self, expected: str, run: Path) -> None:
        """Check that the user's file, if any, has not changed since a run started.

        Args:
            expected: SHA-256 sum of the original contents, in hexadecimal digits.
            run: The run folder, for the message.

        Raises:
            ConfigError: The contents have changed, or cannot be read.
        """
        if self.file is None:
            return
        now = self.file.sha256()
        if now != expected:
            reason = (
                f"{self.file.path} has changed since the run in {run} began: its SHA-256 sum is {now}, expected "
                f"{expected}"
            )
            raise ConfigError([Problem(f"env.options.{self.file.option}", reason)])

    def render_options(self) -> Mapping[str, Any]:
        """Return the options that make the environment render screens for videos."""
        return self.given

    def rendered(self) -> Environment:
        """Return the environment with render_options(), or itself if they do not change its options.

        Raises:
            ConfigError: The options are incompatible with rendering.
        """
        options = self.render_options()
        if options == self.given:
            return self
        made = type(self)(self.name, self.given_name, options)
        refuse(made.problems)
        return made


def _checked(kind: type, given: Mapping[str, Any]) -> tuple[Any, list[str], list[Problem]]:
    """Validate options against their class.

    Args:
        kind: The class, decorated with neuroevo.core.settings.settings.
        given: The given options.

    Returns:
        The options, with defaults for invalid ones; the names of the valid given options; and the problems of the
        invalid ones.
    """
    known = [field.name for field in fields(kind)]
    problems = [
        Problem(
            f"env.options.{key}",
            f"there is no such key{did_you_mean(key, known)} (keys of [env.options]: {', '.join(known)})",
            value,
        )
        for key, value in given.items()
        if key not in known
    ]
    valid = {key: value for key, value in given.items() if key in known}
    try:
        return kind(**valid), list(valid), problems
    except ValidationError as error:
        problems += problems_of("env.options", error)
        wrong = {detail["loc"][:1] for detail in error.errors()}
    valid = {} if () in wrong else {key: value for key, value in valid.items() if (key,) not in wrong}
    return kind(**valid), list(valid), problems
