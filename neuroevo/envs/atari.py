"""The Atari games: their names, their options, and the ROMs that ale-py ships for them."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from neuroevo.core.behavior import Measure
from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, did_you_mean
from neuroevo.core.settings import listed, settings, whole
from neuroevo.envs.atari_ram import RAM_NAMES
from neuroevo.envs.environment import Environment
from neuroevo.envs.names import key_of, option_text

# ALE has ROMs of these but no single-player mode.
_MULTIPLAYER_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})

# A name that Gymnasium registers: what is before the game, the game, what is after it, a version.
_REGISTERED = re.compile(r"((?:ALE|neuroevo)/)?(.*?)(NoFrameskip|Deterministic)?(?:-v(\d+))?", re.IGNORECASE)
_STICKY = {0: 0.25, 4: 0.0, 5: 0.25}  # by the version

_MAX_INT = 2**31 - 1
_RAM_BYTES = 128
_Whole = Annotated[int, BeforeValidator(whole)]
_ByteOrName = Annotated[int | str, BeforeValidator(whole)]  # check() knows which the game has
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
    behavior: Annotated[tuple[_ByteOrName, ...], BeforeValidator(listed)] = ()
    """The bytes of RAM that are the behavior of an episode, by their numbers from 0 to 127 or, where the game has them,
    by names such as "room" and "player_x"; empty: all bytes."""


class AtariGame(Environment):
    """An Atari game, which custom_ops/envs/atari plays."""

    family = "atari"
    noun = "games"
    continuous_actions = False
    free_options = ("emulator",)
    image_observations = True
    options_type = AtariOptions
    options: AtariOptions

    @classmethod
    @functools.cache
    def names(cls) -> Sequence[str]:
        """Return the single-player games for which the ale-py wheel has a ROM, in snake case, sorted."""
        from ale_py import roms

        return tuple(sorted(rom for rom in roms.get_all_rom_ids() if rom not in _MULTIPLAYER_ONLY))

    @classmethod
    def key(cls, given_name: str) -> str:
        """Return the key of a name without what Gymnasium puts around it."""
        return key_of(_parts(given_name)[1])

    @classmethod
    def find(cls, given_name: str) -> str | None:
        """Return a game whatever its version, which check() judges: Frostbite, ALE/Frostbite-v5, ..."""
        return cls._by_key().get(cls.key(given_name))

    @classmethod
    def gymnasium_ids(cls) -> Mapping[str, str]:
        """Return ALE's names, which imply its settings: Frostbite-v5."""
        return {f"{_title(game)}-v5": f"ALE/{_title(game)}-v5" for game in cls.names()}

    @classmethod
    def named_options(cls, given_name: str) -> Mapping[str, Any]:
        """Return the settings that Gymnasium registers under the name; frostbite alone is the protocol of 2018."""
        prefix, _, suffix, version = _parts(given_name)
        if not (prefix or suffix or version):
            return {}
        sticky = _STICKY.get(int(version or 5))
        return {} if sticky is None else {"protocol": "gymnasium", "repeat_action_probability": sticky}

    @property
    def rules(self) -> str:
        """The protocol, sticky actions, and what else differs from the defaults."""
        chosen = self.options
        sticky = f"sticky actions {chosen.repeat_action_probability:g}"
        texts = [f"the protocol {_PROTOCOLS[chosen.protocol]}", sticky, f"frame skip {chosen.frame_skip}"]
        for field in fields(AtariOptions):
            value = getattr(chosen, field.name)
            if value != field.default and field.name not in ("protocol", "repeat_action_probability", "frame_skip"):
                texts.append(f"{field.name} = {option_text(value)}")
        return ", ".join(texts)

    @property
    def measures(self) -> Sequence[Measure]:
        """Bytes of RAM."""
        chosen = self.options.behavior or range(_RAM_BYTES)
        return [Measure(byte if isinstance(byte, str) else f"RAM {byte}", 0, 255) for byte in chosen]

    def check(self) -> list[Problem]:
        """Report a version that Gymnasium lacks or that is not supported, and a missing or damaged ROM."""
        wrong = self._wrong_version()
        if wrong is None:
            try:
                _rom_path(self.name)
            except UserError as error:
                wrong = str(error)
        found = [] if wrong is None else [Problem("env.name", wrong, self.given_name)]
        for key, value in _SCREEN_OF_2018.items() if self.options.protocol == "uber" else ():
            if getattr(self.options, key) != value:
                expected = f'the protocol "uber" has {option_text(value)}; expected that, or protocol = "gymnasium"'
                found.append(Problem(f"env.options.{key}", expected, getattr(self.options, key)))
        known = RAM_NAMES.get(self.name, {})
        named = f", or one of {', '.join(known)}" if known else ""
        for place, byte in enumerate(self.options.behavior):
            if byte in known if isinstance(byte, str) else 0 <= byte < _RAM_BYTES:
                continue
            expected = f"expected numbers of bytes from 0 to {_RAM_BYTES - 1}{named}{did_you_mean(str(byte), known)}"
            found.append(Problem(f"env.options.behavior.{place}", expected, byte))
        return found

    def native_options(self) -> Mapping[str, Any]:
        """Add the ROM's path, and resolve the names of bytes. UserError: the ROM is missing or damaged."""
        options: dict[str, Any] = {"rom": _rom_path(self.name), **self.values}
        if self.options.behavior:
            known = RAM_NAMES.get(self.name, {})
            options["behavior"] = tuple(
                known[byte] if isinstance(byte, str) else byte for byte in self.options.behavior
            )
        return options

    def _wrong_version(self) -> str | None:
        """Return why a name with a version or the like cannot be played as Gymnasium would; None: it can."""
        prefix, _, suffix, version = _parts(self.given_name)
        number, kind = int(version or 5), suffix.lower()
        if (number == 5 and not kind) or (number in (0, 4) and kind == "noframeskip" and not prefix):
            return None
        known = f"ALE/{_title(self.name)}-v5, {_title(self.name)}NoFrameskip-v4, {_title(self.name)}NoFrameskip-v0"
        expected = f"expected {known}, or {self.name} for the protocol of 2018"
        if number in (0, 4) and not kind and not prefix:
            return f"Gymnasium's environment of that name skips 2 to 4 frames, drawn again in each step; {expected}"
        return f"Gymnasium has no environment of that name; {expected}"


def _parts(name: str) -> tuple[str, str, str, str]:
    """Split a name into (prefix, game, suffix, version), of which those that it lacks are ""."""
    found = _REGISTERED.fullmatch(name.strip())
    return ("", name, "", "") if found is None else (found[1] or "", found[2], found[3] or "", found[4] or "")


def _title(game: str) -> str:
    """Write a game as Gymnasium's names do: MsPacman."""
    return game.title().replace("_", "")


def _rom_path(game: str) -> str:
    """Return the path of a game's ROM. UserError: it is missing or damaged."""
    from ale_py import roms

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # ale-py prints a line when ALE_ROMS_DIR is set
            return str(roms.get_rom_path(game))
    except OSError as error:
        why = f"there is no {error.filename}" if error.filename else " ".join(str(error).split())
        raise UserError(f"the ROM of '{game}' cannot be used: {why} (reinstall ale-py or set ALE_ROMS_DIR)") from None
