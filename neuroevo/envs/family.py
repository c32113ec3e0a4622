"""What a family of environments must say of itself.

To add one, write a subclass in a module of its own and name an instance of it in registry.FAMILIES; what makes its
environments is a file in custom_ops/envs.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from neuroevo.core.named_code import NamedCode
from neuroevo.core.problems import ConfigError, Problem
from neuroevo.system.reading import read_regular


@dataclass(frozen=True)
class UserFile:
    """A file of the user's own that an environment is made from, such as a maze's map.

    Attributes:
        option: The option of [env.options] that names it.
        path: Where it is, absolute.
    """

    option: str
    path: Path

    def sha256(self) -> str:
        """The SHA-256 sum of what the file holds now, in hexadecimal digits.

        Raises:
            ConfigError: It cannot be read.
        """
        try:
            return hashlib.sha256(read_regular(self.path)).hexdigest()
        except OSError as error:
            reason = f"cannot read {self.path}: {error.strerror}"
            raise ConfigError([Problem(f"env.options.{self.option}", reason)]) from None


class EnvFamily(ABC):
    """A family of environments: their names, their options, and what is known of them before one is made.

    The argument `name` of methods is an environment's full name, which find() gave, and `options` are those of the
    table [env.options], without defaults.

    Attributes:
        name: What the native code calls the family.
        continuous_actions: Whether an action is a vector of numbers; None where environments differ in that.
        file_option: The option that may be the path of a file of the user's own, whose contents results depend on. It
            is a path where it begins with / . or ~, and anything else a name.
        free_options: The options that results do not depend on.
        retries: Whether an episode may be played again, as EnvSpec.retries has it.
        tried_at_preflight: Whether an environment is made once, before a run starts, to see that it can be; only where
            that takes well below a second.
        behaviors: Whether where an episode ends is recorded, as core.behavior says; novelty search needs it.
        accelerated: Whether its simulators run on the accelerator, together with the networks; then
            neuroevo/accelerated plays them, and the native core does not.
    """

    name: ClassVar[str]
    continuous_actions: ClassVar[bool | None] = None
    file_option: ClassVar[str | None] = None
    free_options: ClassVar[Sequence[str]] = ()
    retries: ClassVar[bool] = False
    tried_at_preflight: ClassVar[bool] = True
    behaviors: ClassVar[bool] = True
    accelerated: ClassVar[bool] = False

    @abstractmethod
    def find(self, given_name: str) -> str | None:
        """The full name of the environment that somebody calls `given_name`; None: it is none of this family."""

    @abstractmethod
    def options_type(self, name: str) -> type:
        """The class of an environment's options, made by neuroevo.core.settings.settings."""

    def named_options(self, given_name: str) -> Mapping[str, Any]:  # noqa: ARG002
        """The options that the name itself has; an option that is given goes before."""
        return {}

    def rules(self, name: str, options: Mapping[str, Any]) -> str:  # noqa: ARG002
        """What a user should know of how it is played, where one name may mean several things; "" where it may not.

        Args:
            name: The environment.
            options: Options as options_type() has them, of which none is None.
        """
        return ""

    @abstractmethod
    def native_options(self, name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """What the native family takes, as texts "key=value".

        Args:
            name: The environment.
            options: Options as options_type() has them, of which none is None.

        Raises:
            UserError: Something that the environment needs is missing, such as a game's ROM.
        """

    @abstractmethod
    def listing(self) -> str:
        """The family's environments on one line, for `neuroevo info`."""

    def nearest(self, given_name: str) -> tuple[float, str] | None:  # noqa: ARG002
        """The environment that was probably meant by a name that no family knows.

        Returns:
            How alike the names are, from 0 to 1, which is the same name but for its version, and the full name; None:
            none is.
        """
        return None

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        """What is wrong with an environment that was found and options that are right by themselves.

        Args:
            name: The environment.
            given_name: What the configuration calls it, for a problem of env.name.
            options: Options as options_type() has them.
        """
        return []

    def image_observations(self, options: Mapping[str, Any]) -> bool | None:  # noqa: ARG002
        """Whether observations are uint8 images, not vectors of numbers; None: it is not known before one is made.

        Args:
            options: Options as they were given, which need not be right.
        """
        return None

    def render_options(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options with which an environment has screens for videos, where that depends on options."""
        return options

    def frames_per_s(self, name: str, options: Mapping[str, Any]) -> float | None:  # noqa: ARG002
        """How many steps make a second of real time; None: as many as the environment's frame skip makes of 60 Hz."""
        return None

    def solved_return(self, name: str, options: Mapping[str, Any]) -> float | None:  # noqa: ARG002
        """The mean return at which an environment counts as solved; None: there is none that people agree on.

        Args:
            name: The environment.
            options: Options as options_type() has them, of which none is None.
        """
        return None

    def robot_model(self, name: str, options: Mapping[str, Any]) -> Path | None:  # noqa: ARG002
        """The file of the MuJoCo model that an environment's states are of, for videos; None: it has none.

        Args:
            name: The environment.
            options: Options as options_type() has them, of which none is None.

        Raises:
            UserError: It is missing.
        """
        return None

    def gymnasium_ids(self) -> Mapping[str, str]:
        """What gymnasium.make_vec is to call environments, after "neuroevo/", and names by which find() has them."""
        return {}

    def named_code(self, given_name: str, options: Mapping[str, Any]) -> list[NamedCode]:  # noqa: ARG002
        """What an environment imports or has others' code parse that is not the package's; nothing of it is touched.

        Args:
            given_name: What the configuration calls it.
            options: Options as they were given, which need not be right.
        """
        return []

    def user_file(self, options: Mapping[str, Any]) -> UserFile | None:
        """The file of the user's own that options name; None: they name none."""
        given = options.get(self.file_option) if self.file_option is not None else None
        if self.file_option is None or not isinstance(given, str) or not given.startswith((".", "/", "~")):
            return None
        return UserFile(self.file_option, Path(given).expanduser().resolve())

    def deciding(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What of the options results depend on.

        Returns:
            "options", without those that are free; and in place of one that names a file of the user's own "file", the
            SHA-256 sum of what that holds now.

        Raises:
            ConfigError: The file cannot be read.
        """
        kept = {key: value for key, value in options.items() if key not in self.free_options}
        file = self.user_file(options)
        if file is None:
            return {"options": kept}
        return {"options": {key: value for key, value in kept.items() if key != file.option}, "file": file.sha256()}
