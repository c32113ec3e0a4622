"""The Atari games: their names, their options, and the ROMs that ale-py brings for them."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem
from neuroevo.core.settings import settings, whole
from neuroevo.envs.family import EnvFamily
from neuroevo.envs.names import key_of, nearest_of, option_text

# ALE has ROMs of these but no single-player mode.
_MULTIPLAYER_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})

# A name that Gymnasium registers: what is before the game, the game, what is after it, a version.
_REGISTERED = re.compile(r"((?:ALE|neuroevo)/)?(.*?)(NoFrameskip|Deterministic)?(?:-v(\d+))?", re.IGNORECASE)
_STICKY = {0: 0.25, 4: 0.0, 5: 0.25}  # by the version

_MAX_INT = 2**31 - 1
_Whole = Annotated[int, BeforeValidator(whole)]
_SCREEN_OF_2018 = {"stack": 4, "screen_size": 84, "grayscale": True}
_PROTOCOLS = {"uber": "of arXiv 1712.06567", "gymnasium": "of Gymnasium's AtariPreprocessing"}


@settings
class AtariOptions:
    """Options of the Atari games: the table [env.options] of a configuration."""

    protocol: Literal["uber", "gymnasium"] = "uber"
    """How a game starts and what a network sees of it: as in arXiv 1712.06567, or as Gymnasium's AtariPreprocessing and
    FrameStackObservation. Names that Gymnasium has, such as ALE/Frostbite-v5, say "gymnasium"."""
    repeat_action_probability: Annotated[float, Strict(), Field(ge=0, le=1)] = 0.0
    """Sticky actions: how likely a frame repeats the last frame's action. ALE/*-v5 and *NoFrameskip-v0 say 0.25."""
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
    stack: Annotated[_Whole, Field(ge=1, le=16)] = 4
    """How many frames are observed, with protocol = "gymnasium"."""
    screen_size: Annotated[_Whole, Field(ge=32, le=160)] = 84
    """Height and width of a frame in pixels, likewise."""
    grayscale: bool = True
    """Whether frames are gray, not red, green and blue, likewise."""
    emulator: Literal["neuroevo", "ale"] = "neuroevo"
    """Whose emulation of the console's processor and television chip: neuroevo's, or the Arcade Learning Environment's,
    which does the same more slowly."""
    channels_first: bool = False
    """Whether an observation is [channels, height, width], as PyTorch's networks take it; networks of this package take
    [height, width, channels]."""


@functools.cache
def names() -> list[str]:
    """The single-player games that the ale-py wheel has a ROM for, in snake case, sorted."""
    from ale_py import roms

    return sorted(rom for rom in roms.get_all_rom_ids() if rom not in _MULTIPLAYER_ONLY)


class AtariFamily(EnvFamily):
    """The Atari games, which custom_ops/envs/atari plays; EnvFamily says what the methods mean."""

    name = "atari"
    continuous_actions = False
    free_options = ("emulator",)

    def find(self, given_name: str) -> str | None:
        """The game of that name in snake case; any of its usual names: Frostbite, ALE/Frostbite-v5, ..."""
        return _games_by_key().get(_bare_key(given_name))

    def named_options(self, given_name: str) -> Mapping[str, Any]:
        """The settings that Gymnasium registers under the name; frostbite alone is the protocol of 2018."""
        sticky = _sticky_of(given_name)
        return {} if sticky is None else {"protocol": "gymnasium", "repeat_action_probability": sticky}

    def nearest(self, given_name: str) -> tuple[float, str] | None:
        """The game whose name is most like it, whatever the version."""
        return nearest_of(_bare_key(given_name), _games_by_key())

    def options_type(self, name: str) -> type:  # noqa: ARG002 - the options of all games are the same
        """The class of the game's options."""
        return AtariOptions

    def problems(self, name: str, given_name: str, options: Mapping[str, Any]) -> list[Problem]:  # noqa: ARG002
        """Gymnasium may have no such version, or one that is not offered; the ROM may be missing or damaged."""
        wrong = _wrong_version(given_name)
        if wrong is None:
            try:
                _rom_path(name)
            except UserError as error:
                wrong = str(error)
        found = [] if wrong is None else [Problem("env.name", wrong, given_name)]
        for key, value in _SCREEN_OF_2018.items() if options.get("protocol", "uber") == "uber" else ():
            if options.get(key, value) != value:
                expected = f'the protocol "uber" has {option_text(value)}; expected that, or protocol = "gymnasium"'
                found.append(Problem(f"env.options.{key}", expected, options[key]))
        return found

    def native_options(self, name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
        """The ROM's path and the options. UserError: the ROM is missing or damaged."""
        return (f"rom={_rom_path(name)}", *(f"{key}={option_text(value)}" for key, value in options.items()))

    def image_observations(self, options: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """What a network sees of a game is always its screen."""
        return True

    def rules(self, name: str, options: Mapping[str, Any]) -> str:  # noqa: ARG002 - those of all games are alike
        """The protocol, sticky actions, and what else differs from the defaults."""
        chosen = AtariOptions(**options)
        sticky = f"sticky actions {chosen.repeat_action_probability:g}"
        texts = [f"the protocol {_PROTOCOLS[chosen.protocol]}", sticky, f"frame skip {chosen.frame_skip}"]
        for field in fields(AtariOptions):
            value = getattr(chosen, field.name)
            if value != field.default and field.name not in ("protocol", "repeat_action_probability", "frame_skip"):
                texts.append(f"{field.name} = {option_text(value)}")
        return ", ".join(texts)

    def listing(self) -> str:
        """The games."""
        return f"games ({len(names())}): {', '.join(names())}"

    def gymnasium_ids(self) -> Mapping[str, str]:
        """As ALE has them, with ALE's settings: Frostbite-v5."""
        return {f"{_title(game)}-v5": f"ALE/{_title(game)}-v5" for game in names()}


@functools.cache
def _games_by_key() -> dict[str, str]:
    return {key_of(game): game for game in names()}


def _bare_key(name: str) -> str:
    """The key of a name without what Gymnasium puts around it."""
    return key_of(_parts(name)[1])


def _parts(name: str) -> tuple[str, str, str, str]:
    """What of a name is before the game, the game, what is after it, and the version; what there is not is empty."""
    found = _REGISTERED.fullmatch(name.strip())
    return ("", name, "", "") if found is None else (found[1] or "", found[2], found[3] or "", found[4] or "")


def _sticky_of(given_name: str) -> float | None:
    """The sticky actions of a name that Gymnasium has; None for one that is ours, with the protocol of 2018."""
    before, _, after, version = _parts(given_name)
    return _STICKY.get(int(version or 5)) if before or after or version else None


def _wrong_version(given_name: str) -> str | None:
    """Why a name with a version or the like cannot be played as Gymnasium would; None: it can."""
    before, game, after, version = _parts(given_name)
    number, kind = int(version or 5), after.lower()
    if (number == 5 and not kind) or (number in (0, 4) and kind == "noframeskip" and not before):
        return None
    name = _games_by_key()[key_of(game)]
    title = _title(name)
    expected = (
        f"expected ALE/{title}-v5, {title}NoFrameskip-v4, {title}NoFrameskip-v0, or {name} for the protocol of 2018"
    )
    if number in (0, 4) and not kind and not before:
        return f"Gymnasium's environment of that name skips 2 to 4 frames, drawn anew in each step; {expected}"
    return f"Gymnasium has no environment of that name; {expected}"


def _title(game: str) -> str:
    """A game as Gymnasium's names have it: MsPacman."""
    return game.title().replace("_", "")


def _rom_path(game: str) -> str:
    """The file of the game's ROM. UserError: it is missing or damaged."""
    from ale_py import roms

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # ale-py prints a line when ALE_ROMS_DIR is set
            return str(roms.get_rom_path(game))
    except OSError as error:
        why = f"there is no {error.filename}" if error.filename else " ".join(str(error).split())
        raise UserError(f"the ROM of '{game}' cannot be used: {why} (reinstall ale-py or set ALE_ROMS_DIR)") from None
