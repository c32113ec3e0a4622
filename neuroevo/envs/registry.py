"""Names of environments, as users know them, and what the env pool needs to make them.

A family is a module: FAMILY, the native family's name; find(name), the environment's full name or None; near(name), for
suggestions; options_of(found), a settings class; problems(found, given name, values), what else is wrong; and
native_options(found, values), texts "key=value". SCREENS and VECTOR say whether its observations are uint8 images and
its actions vectors of numbers; a family whose environments differ in that has neither, and one in which options decide
has screens(options) instead. One whose environments have screens for videos only where options say so has
rendered(options), those that do, and one that knows how fast videos are to play frames_per_s(found, options). FILE is
the option that may be the path of a file, which then begins with / . or ~, and whose contents results depend on, and
FREE are options that results do not depend on, in families that have such. To add one, write the module and name it in
_FAMILIES.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from difflib import SequenceMatcher
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from neuroevo.core.env_spec import EnvRecipe
from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, did_you_mean, nearest, problems_of, refuse
from neuroevo.envs import atari, hard_maze, mujoco
from neuroevo.envs.gymnasium import family as gymnasium

# The first that finds a name has it.
_FAMILIES: tuple[ModuleType, ...] = (gymnasium, mujoco, hard_maze, atari)


def check(name: str, options: Mapping[str, object]) -> list[Problem]:
    """All that is wrong with an environment's name and options.

    Without loading native code; so a mode or a difficulty may still be one that the game lacks.
    """
    family, found = _find(name)
    if found is None:
        unknown = Problem("env.name", f"there is no such environment{_hint(name)}", name)
        return [unknown, *_check_options(atari.AtariOptions, options)[1]]
    return _checked(family, found, name, options)[1]


def kind_of(name: str, options: Mapping[str, object] | None = None) -> tuple[bool | None, bool | None]:
    """Whether an environment's observations are screens, with these options of [env.options] where that depends on
    them, and its actions vectors of numbers; None: it is not known.
    """
    family, _ = _find(name)
    by_options = getattr(family, "screens", None)
    screens = getattr(family, "SCREENS", None) if by_options is None else by_options(options or {})
    return screens, getattr(family, "VECTOR", None)


def options_of(name: str) -> type:
    """The class of an environment's options, of which [env.options] gives values; of an unknown one, that of Atari."""
    family, found = _find(name)
    return atari.AtariOptions if found is None else family.options_of(found)


def rendered(name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options with which an environment has screens for videos, if its family can have some."""
    family, _ = _find(name)
    change = getattr(family, "rendered", None)
    return options if change is None else change(options)


def frames_per_s(name: str, options: Mapping[str, Any]) -> float | None:
    """How many of an environment's screens, one a step, make a second of real time, if its family knows."""
    family, found = _find(name)
    ask = getattr(family, "frames_per_s", None)
    return None if ask is None else ask(found, options)


def resolve(name: str, options: Mapping[str, object] | None = None) -> EnvRecipe:
    """Finds a game by any of its usual names: frostbite, Frostbite, ALE/Frostbite-v5, FrostbiteNoFrameskip-v4; or a
    MuJoCo task: HalfCheetah-v5, HalfCheetah, half_cheetah; or a maze: HardMaze-v0, HardMaze, hard_maze; or any
    environment of Gymnasium: gymnasium:CartPole-v1.

    options: values of options_of(name) by name; None is the default. Raises UserError for an unknown name, with the
    nearest known one, for a missing ROM or model, and for bad options, with all of their problems.
    """
    family, found = _find(name)
    if found is None:
        raise UserError(f"environment '{name}' is unknown{_hint(name)}")
    given = {key: value for key, value in (options or {}).items() if value is not None}
    values, problems = _checked(family, found, name, given)
    refuse(problems)
    return EnvRecipe(found, family.FAMILY, family.native_options(found, values))


def file_of(name: str, options: Mapping[str, Any]) -> tuple[str, Path] | None:
    """The option that names a file of the user's own, and the file's absolute path; None: none does."""
    family, _ = _find(name)
    key = getattr(family, "FILE", "")
    given = options.get(key)
    if not isinstance(given, str) or not given.startswith((".", "/", "~")):
        return None
    return key, Path(given).expanduser().resolve()


def settled(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as a run keeps them: a file by its absolute path, the same from every folder."""
    file = file_of(name, options)
    return dict(options) if file is None else {**options, file[0]: str(file[1])}


def deciding(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What of the options results depend on: "options", without those that are free, and in place of one that names a
    file of the user's own "file", the SHA-256 sum of what it holds. UserError: it cannot be read.
    """
    free, file = free_options(name), file_of(name, options)
    kept = {key: value for key, value in options.items() if key not in free}
    if file is None:
        return {"options": kept}
    key, path = file
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"env.options.{key}: cannot read {path}: {error.strerror}") from None
    return {"options": {other: value for other, value in kept.items() if other != key}, "file": digest}


def free_options(name: str) -> tuple[str, ...]:
    """The options of an environment that results do not depend on."""
    family, _ = _find(name)
    return getattr(family, "FREE", ())


def _find(name: str) -> tuple[ModuleType | None, str | None]:
    """The family that has an environment of that name, and its full name; None, None if there is none."""
    for family in _FAMILIES:
        found = family.find(name)
        if found is not None:
            return family, found
    return None, None


def _hint(name: str) -> str:
    """The same name with Gymnasium's prefix, if there is one, or the nearest known one, and where all are listed."""
    near = []
    for family in _FAMILIES:
        key, known = family.near(name)
        close = nearest(key, known)
        if close:
            near.append((SequenceMatcher(None, key, close).ratio(), known[close]))
    alike, meant = max(near, default=(0.0, ""))
    if alike < 1 and gymnasium.registered(name):  # alike 1: only the version is another one
        meant = f"gymnasium:{name}"
    return f"{f'; did you mean {meant}?' if meant else ''} (`neuroevo info` lists the environments)"


def _checked(
    family: ModuleType, found: str, name: str, options: Mapping[str, object]
) -> tuple[dict[str, object], list[Problem]]:
    """The given options as the family has them, if there are no problems; and the problems."""
    values, bad = _check_options(family.options_of(found), options)
    return values, family.problems(found, name, values) + bad


def _check_options(kind: type, options: Mapping[str, object]) -> tuple[dict[str, object], list[Problem]]:
    """The given options as `kind` has them, if there are no problems; and the problems."""
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
    try:
        checked = kind(**{key: value for key, value in options.items() if key in known})
    except ValidationError as error:
        return {}, problems + problems_of("env.options", error)
    return {key: getattr(checked, key) for key in options if key in known}, problems
