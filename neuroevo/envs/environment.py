"""An environment of a configuration, found once and handed on to everything that asks something of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.problems import ConfigError, Problem, did_you_mean, problems_of, refuse
from neuroevo.envs.family import EnvFamily, UserFile


@dataclass(frozen=True)
class Environment:
    """An environment and its options. checked() makes one.

    Attributes:
        given_name: What the configuration calls it: "ALE/Frostbite-v5".
        name: Its full name: "frostbite".
        family: The family that it is of.
        options: Its options as a run keeps them: those that were given, a file of the user's own by its absolute path.
        values: The same as the family's options_type() has them, without those that are None.
    """

    given_name: str
    name: str
    family: EnvFamily
    options: Mapping[str, Any]
    values: Mapping[str, Any]

    @classmethod
    def checked(
        cls, family: EnvFamily, name: str, given_name: str, options: Mapping[str, Any]
    ) -> tuple[Environment, list[Problem]]:
        """An environment, and what is wrong with it, without loading native code.

        Args:
            family: The family that found it.
            name: Its full name.
            given_name: What the configuration calls it.
            options: What the configuration has in [env.options].

        Returns:
            The environment, of which nothing but its names, family and options, and what follows from these, may be
            asked where there are problems; and the problems.
        """
        options = {**family.named_options(given_name), **options}
        values, wrong = check_options(family.options_type(name), options)
        problems = family.problems(name, given_name, values) + wrong
        file = None if problems else family.user_file(options)
        kept = dict(options) if file is None else {**options, file.option: str(file.path)}
        return cls(given_name, name, family, kept, values), problems

    @property
    def title(self) -> str:
        """What tells it from others in tables and names of folders: where the given name says which rules, that."""
        has_rules = self.family.named_options(self.given_name)
        return self.given_name.strip().replace("/", "-") if has_rules else self.name

    @property
    def options_type(self) -> type:
        """The class of its options."""
        return self.family.options_type(self.name)

    @property
    def rules(self) -> str:
        """What a user should know of how it is played, as EnvFamily.rules() has it."""
        return self.family.rules(self.name, self.values)

    def settings(self) -> dict[str, Any]:
        """All that was settled about it, for a run's info.json: family, name, and options with their defaults."""
        made = self.options_type(**self.values)
        return {"family": self.family.name, "name": self.name, **asdict(made)}

    @property
    def image_observations(self) -> bool | None:
        """Whether observations are uint8 images, not vectors of numbers; None: it is not known before one is made."""
        return self.family.image_observations(self.options)

    @property
    def continuous_actions(self) -> bool | None:
        """Whether an action is a vector of numbers; None: it is not known before one is made."""
        return self.family.continuous_actions

    @property  # cached_property's lock, which all objects share, could stay locked in a fork
    def spec(self) -> EnvSpec:
        """What the native core makes it of.

        Raises:
            UserError: Something that it needs is missing.
        """
        options = self.family.native_options(self.name, self.values)
        return EnvSpec(self.name, self.family.name, options, self.family.retries)

    @property
    def file(self) -> UserFile | None:
        """The file of the user's own that it is made from; None: there is none."""
        return self.family.user_file(self.options)

    def solved_return(self) -> float | None:
        """The mean return at which it counts as solved, as EnvFamily.solved_return() has it; None: none is known."""
        return self.family.solved_return(self.name, self.values)

    def robot_model(self) -> Path | None:
        """The MuJoCo model that its states are of, as EnvFamily.robot_model() has it. UserError: it is missing."""
        return self.family.robot_model(self.name, self.values)

    def deciding(self) -> dict[str, Any]:
        """What of its options results depend on, as EnvFamily.deciding() has it. ConfigError: its file is gone."""
        return self.family.deciding(self.options)

    def check_file(self, expected: str, run: Path) -> None:
        """Whether the file that it is made from is still what it was when a run began; nothing where it has none.

        Args:
            expected: The SHA-256 sum of what it held then, in hexadecimal digits.
            run: The run's folder, to say whose.

        Raises:
            ConfigError: It holds something else, or cannot be read.
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

    def rendered(self) -> Environment:
        """The same with screens for videos, if its family can have some: itself where it has them as it is.

        Raises:
            ConfigError: Options do not go with screens.
        """
        options = self.family.render_options(self.options)
        if options == self.options:
            return self
        environment, problems = self.checked(self.family, self.name, self.given_name, options)
        refuse(problems)
        return environment

    def frames_per_s(self) -> float | None:
        """How many steps make a second of real time; None: as many as the frame skip makes of 60 Hz."""
        return self.family.frames_per_s(self.name, self.options)


def check_options(kind: type, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The given options as a class of options has them, and what is wrong with them.

    Args:
        kind: The class, made by neuroevo.core.settings.settings.
        options: Those of [env.options].

    Returns:
        The options that were given and are not None; none at all where a value is wrong. And the problems.
    """
    known = [field.name for field in fields(kind)]
    problems = [
        Problem(
            f"env.options.{key}",
            f"there is no such key{did_you_mean(key, known)} (keys of [env.options]: {', '.join(known)})",
            value,
        )
        for key, value in options.items()
        if key not in known
    ]
    given = {key: value for key, value in options.items() if key in known}
    try:
        made = kind(**given)
    except ValidationError as error:
        return {}, problems + problems_of("env.options", error)
    return {key: getattr(made, key) for key in given if getattr(made, key) is not None}, problems
