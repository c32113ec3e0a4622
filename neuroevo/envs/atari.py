"""The Atari games: their names, their options, and the ROMs that ale-py brings for them."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem
from neuroevo.core.settings import settings, whole
from neuroevo.envs.family import EnvFamily
from neuroevo.envs.names import key_of, nearest_of, option_text

# ALE has ROMs of these but no single-player mode.
_MULTIPLAYER_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})

_MAX_INT = 2**31 - 1
_Whole = Annotated[int, BeforeValidator(whole)]


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


@functools.cache
def names() -> list[str]:
    """The single-player games that the ale-py wheel has a ROM for, in snake case, sorted."""
    from ale_py import roms

    return sorted(rom for rom in roms.get_all_rom_ids() if rom not in _MULTIPLAYER_ONLY)


class AtariFamily(EnvFamily):
    """The Atari games, which custom_ops/envs/atari plays; EnvFamily says what the methods mean."""

    name = "atari"
    continuous_actions = False

    def find(self, given_name: str) -> str | None:
        """The game of that name in snake case; any of its usual names: Frostbite, ALE/Frostbite-v5, ..."""
        return _games_by_key().get(_bare_key(given_name))

    def nearest(self, given_name: str) -> tuple[float, str] | None:
        """The game whose name is most like it, whatever the version."""
        return nearest_of(_bare_key(given_name), _games_by_key())

    def options_type(self, name: str) -> type:  # noqa: ARG002 - the options of all games are the same
        """The class of the game's options."""
        return AtariOptions

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        """The ROM may be missing or damaged."""
        try:
            _rom_path(name)
        except UserError as error:
            return [Problem("env.name", str(error), given_name)]
        return []

    def native_options(self, name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The ROM's path and the options. UserError: the ROM is missing or damaged."""
        return (f"rom={_rom_path(name)}", *(f"{key}={option_text(value)}" for key, value in options.items()))

    def image_observations(self, options: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """What a network sees of a game is always its screen."""
        return True

    def listing(self) -> str:
        """The games."""
        return f"games ({len(names())}): {', '.join(names())}"

    def gymnasium_ids(self) -> Mapping[str, str]:
        """As ALE has them: Frostbite-v5."""
        return {"".join(word.capitalize() for word in game.split("_")) + "-v5": game for game in names()}


@functools.cache
def _games_by_key() -> dict[str, str]:
    return {key_of(game): game for game in names()}


def _bare_key(name: str) -> str:
    """The key of a name without what Gymnasium puts around it."""
    return key_of(re.sub(r"^ALE/|(NoFrameskip|Deterministic)?-v\d+$", "", name.strip()))


def _rom_path(game: str) -> str:
    """The file of the game's ROM. UserError: it is missing or damaged."""
    from ale_py import roms

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # ale-py prints a line when ALE_ROMS_DIR is set
            return str(roms.get_rom_path(game))
    except OSError as error:
        why = f"there is no {error.filename}" if error.filename else " ".join(str(error).split())
        raise UserError(f"the ROM of '{game}' cannot be used: {why} (reinstall ale-py or set ALE_ROMS_DIR)") from None
