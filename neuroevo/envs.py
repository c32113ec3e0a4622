"""Names of environments, as users know them, and what the env pool needs to make them."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Strict, ValidationError

from neuroevo import mujoco_tasks
from neuroevo.config_problems import value_problem
from neuroevo.errors import UserError, did_you_mean, nearest
from neuroevo.settings import settings, whole
from neuroevo.toml_text import inline

# ALE has ROMs of these but no single-player mode.
_MULTIPLAYER_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})

_MAX_INT = 2**31 - 1
_Whole = Annotated[int, BeforeValidator(whole)]


@dataclass(frozen=True)
class EnvRecipe:
    """What EnvPoolMake takes: name of the family and its options, and the name to show."""

    name: str
    family: str
    options: tuple[str, ...]


@functools.cache
def games() -> list[str]:
    """The single-player Atari games that the ale-py wheel has a ROM for, in snake case, sorted."""
    from ale_py import roms

    return sorted(rom for rom in roms.get_all_rom_ids() if rom not in _MULTIPLAYER_ONLY)


@settings
class AtariOptions:
    """Options of the Atari games: the table [env.options] of a configuration."""

    protocol: Literal["uber", "gymnasium"] = "uber"
    """How a game starts and what a network sees of it: as in arXiv 1712.06567, or as Gymnasium's AtariPreprocessing and
    FrameStackObservation."""
    repeat_action_probability: Annotated[float, Strict(), Field(ge=0, le=1)] = 0.0
    """Sticky actions: how likely a frame repeats the last frame's action; Gymnasium's ALE/*-v5 say 0.25."""
    full_action_space: bool = False
    """All 18 actions of the console (9 in Skiing and Lost Luggage) in place of those that the game uses."""
    mode: Annotated[_Whole, Field(ge=0, le=_MAX_INT)] | None = None
    """The game's mode, by ALE's number; by default the game's own default."""
    difficulty: Annotated[_Whole, Field(ge=0, le=_MAX_INT)] | None = None
    """The game's difficulty switches, by ALE's number; by default the game's own default."""
    frame_skip: Annotated[_Whole, Field(ge=1, le=1000)] = 4
    """Emulator frames per step, all with the step's action."""
    noop_max: Annotated[_Whole, Field(ge=0, le=1000)] = 30
    """An episode begins with 1 to this many frames of doing nothing, drawn by its seed; 0: none."""
    terminal_on_life_loss: bool = False
    """Whether losing a life ends the episode."""


def check(name: str, options: Mapping[str, object]) -> list[str]:
    """All that is wrong with an environment's name and options as lines `env.options.frame_skip = 0: expected ...`.

    Without loading native code; so a mode or a difficulty may still be one that the game lacks.
    """
    task = mujoco_tasks.find(name)
    if task is not None:
        return _check_task(task, options)[1]
    problems, game = [], _find(name)
    if game is None:
        problems.append(f"env.name = {inline(name)}: there is no such game{_hint(name)}")
    else:
        try:
            _rom_path(game)
        except UserError as error:
            problems.append(f"env.name = {inline(name)}: {error}")
    return problems + _check_options(AtariOptions, options)[1]


def options_of(name: str) -> type:
    """The class of an environment's options, of which [env.options] gives values; of an unknown one, that of Atari."""
    task = mujoco_tasks.find(name)
    return AtariOptions if task is None else mujoco_tasks.TASKS[task]


def resolve(name: str, options: Mapping[str, object] | None = None) -> EnvRecipe:
    """Finds a game by any of its usual names: frostbite, Frostbite, ALE/Frostbite-v5, FrostbiteNoFrameskip-v4; or a
    MuJoCo task: HalfCheetah-v5, HalfCheetah, half_cheetah.

    options: values of options_of(name) by name; None is the default. Raises UserError for an unknown name, with the
    nearest known one, for a missing ROM or model, and for bad options, with all of their problems.
    """
    given = {key: value for key, value in (options or {}).items() if value is not None}
    task = mujoco_tasks.find(name)
    if task is not None:
        texts, problems = _check_task(task, given)
        _raise(problems)
        return EnvRecipe(f"{task}-v5", "mujoco", texts)
    game = _find(name)
    if game is None:
        raise UserError(f"game '{name}' is unknown{_hint(name)}")
    values, problems = _check_options(AtariOptions, given)
    _raise(problems)
    texts = (f"{key}={_text(value)}" for key, value in values.items())
    return EnvRecipe(game, "atari", (f"rom={_rom_path(game)}", *texts))


def _raise(problems: list[str]) -> None:
    if problems:
        raise UserError(problems[0] if len(problems) == 1 else "\n  ".join(["bad options:", *problems]))


def _check_task(task: str, options: Mapping[str, object]) -> tuple[tuple[str, ...], list[str]]:
    """What the native code takes for a MuJoCo task, if there are no problems; and the problems."""
    values, problems = _check_options(mujoco_tasks.TASKS[task], options)
    if problems:
        return (), problems
    try:
        return mujoco_tasks.native_options(task, values), []
    except UserError as error:
        return (), [f"env.options.xml_file = {inline(values.get('xml_file', ''))}: {error}"]


def _check_options(kind: type, options: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    """The given options as `kind` has them, if there are no problems; and the problems."""
    known = [field.name for field in fields(kind)]
    problems = [
        f"env.options.{key} = {inline(value)}: there is no such key{did_you_mean(key, known)}"
        f" (keys of [env.options]: {', '.join(known)})"
        for key, value in options.items()
        if key not in known
    ]
    try:
        checked = kind(**{key: value for key, value in options.items() if key in known})
    except ValidationError as error:
        return {}, problems + [value_problem("env.options", detail) for detail in error.errors()]
    return {key: getattr(checked, key) for key in options if key in known}, problems


def _text(value: object) -> str:
    """An option's value as the native code reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _find(name: str) -> str | None:
    """The game of that name in snake case."""
    return _games_by_key().get(_bare_key(name))


def _hint(name: str) -> str:
    known = {_key(task): f"{task}-v5" for task in mujoco_tasks.TASKS} | _games_by_key()
    near = nearest(_bare_key(name), known)
    return (f"; did you mean {known[near]}?" if near else "") + " (`neuroevo info` lists the games)"


@functools.cache
def _games_by_key() -> dict[str, str]:
    return {_key(game): game for game in games()}


def _bare_key(name: str) -> str:
    """The key of a name without what Gymnasium puts around it."""
    return _key(re.sub(r"^ALE/|(NoFrameskip|Deterministic)?-v\d+$", "", name.strip()))


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _rom_path(game: str) -> str:
    """The file of the game's ROM. UserError: it is missing or damaged."""
    from ale_py import roms

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # ale-py prints a line when ALE_ROMS_DIR is set
            return str(roms.get_rom_path(game))
    except OSError as error:
        why = f"there is no {error.filename}" if error.filename else " ".join(str(error).split())
        raise UserError(f"the ROM of '{game}' cannot be used: {why} (reinstall ale-py or set ALE_ROMS_DIR)") from None
