"""The base class of environments: a subclass is a family of them, an instance is one of them with its options.

To add a family, write a subclass in a module of its own and list it in registry.FAMILIES; what makes its environments
is a file in custom_ops/envs.
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
    """A user's file that an environment is made from, such as a maze's map.

    Attributes:
        option: The option of [env.options] that names it.
        path: Its absolute path.
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
    """An environment and its options; registry.find() makes one, without loading native code.

    The first group of attributes describes the family, so that a subclass sets them. It overrides those properties
    and methods whose defaults do not fit; a property without arguments may become a class attribute.

    Attributes:
        family: The native code's name of the family.
        noun: What `neuroevo info` calls several environments of the family: "games".
        prefix: Start of the names of a family that accepts any name with it: "gymnasium:".
        continuous_actions: Whether an action is a vector of numbers; None if it is unknown before an environment is
            made.
        file_option: The option that may be the path of a user's file, on whose contents results depend. It is a path
            if it starts with / . or ~, otherwise a name.
        free_options: The options that results do not depend on.
        retries: Whether an episode may be played again, as EnvSpec.retries has it.
        tried_at_preflight: Whether an environment is made once before a run starts, to find out that it can be; only
            where that takes well below a second.
        simulator: The module that simulates the family on the accelerator, together with the networks, by
            make_simulator(environment): "neuroevo.accelerated.brax_simulator". "" if the native core plays it.
        screen_scale: Magnification at which a screen is large enough to watch.

        name: Full name of the environment: "frostbite".
        given_name: Its name in the configuration: "ALE/Frostbite-v5".
        given: The options that were given, as a run keeps them: a user's file by its absolute path.
        options: All options, an instance of options_type; an invalid one has its default.
        values: Those of the given options that are valid and not None, as `options` has them.
        problems: What is wrong with its name and options. If there are any, only what follows from names and options
            may be used.
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
            name: Full name of the environment, which find() returned.
            given_name: Its name in the configuration.
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
        """Return the full names of the family's environments; none where they cannot be listed."""
        return ()

    @classmethod
    def key(cls, given_name: str) -> str:
        """Return the part of a name by which an environment is found: letters and digits, without the version."""
        return key_of(_VERSION.sub("", given_name.strip()))

    @classmethod
    def find(cls, given_name: str) -> str | None:
        """Return the full name of the environment that a user calls `given_name`; None if the family has none."""
        given = given_name.strip()
        if cls.prefix:
            return given if given.startswith(cls.prefix) else None
        name, version = cls._by_key().get(cls.key(given)), _VERSION.search(given)
        return None if name is None or (version and not name.endswith(version[0])) else name

    @classmethod
    def nearest(cls, given_name: str) -> tuple[float, str] | None:
        """Return the environment that was probably meant by an unknown name.

        Returns:
            The similarity of the names from 0 to 1, where versions do not count, and the full name; None if none is
            near.
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
        """Return the ids of gymnasium.make_vec, after "neuroevo/", and the names by which find() has them."""
        return {} if cls.prefix else {name: name for name in cls.names()}

    @classmethod
    def named_options(cls, given_name: str) -> Mapping[str, Any]:
        """Return the options that the name itself implies; an option that is given overrides them."""
        return {}

    @classmethod
    def named_code(cls, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:
        """Return the external code and files that a name and options reference, without loading any of it.

        Args:
            given_name: The environment's name in the configuration.
            options: Its options, which may be invalid.
        """
        return []

    @classmethod
    @cache
    def _by_key(cls) -> dict[str, str]:
        return {cls.key(name): name for name in cls.names()}

    @property
    @abstractmethod
    def options_type(self) -> type:
        """The class of the options, made by neuroevo.core.settings.settings."""

    def check(self) -> list[Problem]:
        """Return what is wrong with the environment apart from its options' types and ranges."""
        return []

    def native_options(self) -> Mapping[str, Any]:
        """Return the options of the native family.

        Raises:
            UserError: Something that the environment needs is missing, such as a game's ROM.
        """
        return self.values

    @property  # cached_property's lock, which all objects share, could stay locked in a fork
    def spec(self) -> EnvSpec:
        """The specification from which the native core makes it; UserError if something that it needs is missing."""
        options = tuple(f"{key}={option_text(value)}" for key, value in self.native_options().items())
        return EnvSpec(self.name, self.family, options, self.retries)

    @property
    def accelerated(self) -> bool:
        """Whether it is simulated on the accelerator: neuroevo/accelerated plays it, and the native core does not."""
        return bool(self.simulator)

    @property
    def title(self) -> str:
        """The name in tables and names of folders: the given one if that implies options."""
        return self.given_name.strip().replace("/", "-") if self.named_options(self.given_name) else self.name

    @property
    def rules(self) -> str:
        """How it is played, where one name may mean several things; otherwise ""."""
        return ""

    @property
    def image_observations(self) -> bool | None:
        """Whether observations are uint8 images, not vectors of numbers; None if unknown before one is made."""
        return None

    @property
    def measures(self) -> Sequence[Measure]:
        """The numbers that describe the current state for novelty search and archives, in order; () if it has none."""
        return ()

    @property
    def solved_return(self) -> float | None:
        """The mean return at which it counts as solved; None if there is no agreed one."""
        return None

    @property
    def robot_model(self) -> Path | None:
        """The MuJoCo model that its states belong to, for videos; None if it has none. UserError: it is missing."""
        return None

    @property
    def frames_per_s(self) -> float | None:
        """Steps per second of real time; None: what its frame skip makes of 60 Hz."""
        return None

    @property
    def walls(self) -> dict[str, Any] | None:
        """The plan to draw behind positions: start and goal [x, y], walls [x0, y0, x1, y1]; None if it has none."""
        return None

    @property
    def file(self) -> UserFile | None:
        """The user's file that it is made from; None if there is none."""
        given = self.given.get(self.file_option) if self.file_option is not None else None
        if self.file_option is None or not isinstance(given, str) or not given.startswith(("/", ".", "~")):
            return None
        return UserFile(self.file_option, Path(os.path.expanduser(given)).resolve())

    def settings(self) -> dict[str, Any]:
        """Return the family, the name, and the options with their defaults, for what a run records of itself."""
        return {"family": self.family, "name": self.name, **asdict(self.options)}

    def result_options(self) -> dict[str, Any]:
        """Return the options that results depend on.

        Returns:
            "options", without free_options; and "file", the SHA-256 sum of the user's file, in place of the option that
            names it.

        Raises:
            ConfigError: The file cannot be read.
        """
        kept = {key: value for key, value in self.given.items() if key not in self.free_options}
        if self.file is None:
            return {"options": kept}
        del kept[self.file.option]
        return {"options": kept, "file": self.file.sha256()}

    def check_file(self, expected: str, run: Path) -> None:
        """Check that the user's file, if there is one, is the one that a run started with.

        Args:
            expected: The SHA-256 sum of its contents then, in hexadecimal digits.
            run: The run's folder, for the message.

        Raises:
            ConfigError: The contents differ, or cannot be read.
        """
        if self.file is None:
            return
        now = self.file.sha256()
        if now != expected:
            reason = (
                f"{self.file.path} is not what the run in {run} began with: the SHA-256 sum of what it holds is {now}, "
                f"expected {expected}"
            )
            raise ConfigError([Problem(f"env.options.{self.file.option}", reason)])

    def render_options(self) -> Mapping[str, Any]:
        """Return the options with which it has screens for videos, where that depends on options."""
        return self.given

    def rendered(self) -> Environment:
        """Return the environment with screens for videos, if its family has them: itself if it has them already.

        Raises:
            ConfigError: Options do not go with screens.
        """
        options = self.render_options()
        if options == self.given:
            return self
        made = type(self)(self.name, self.given_name, options)
        refuse(made.problems)
        return made


def _checked(kind: type, given: Mapping[str, Any]) -> tuple[Any, list[str], list[Problem]]:
    """Make options of a class.

    Args:
        kind: The class, made by neuroevo.core.settings.settings.
        given: The options that were given.

    Returns:
        The options, of which invalid ones have their defaults; the names of those given ones that are valid; and what
        is wrong with the others.
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
