"""Atari games: names, options, and the ROMs shipped with ale-py."""

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

# A name in Gymnasium's registry: prefix, game, suffix, version.
_REGISTERED = re.compile(r"((?:ALE|neuroevo)/)?(.*?)(NoFrameskip|Deterministic)?(?:-v(\d+))?", re.IGNORECASE)
_STICKY = {0: 0.25, 4: 0.0, 5: 0.25}  # by version

_MAX_INT = 2**31 - 1
_RAM_BYTES = 128
_Whole = Annotated[int, BeforeValidator(whole)]
_ByteOrName = Annotated[int | str, BeforeValidator(whole)]  # check() validates the names
_SCREEN_OF_2018 = {"stack": 4, "screen_size": 84, "grayscale": True}
_PROTOCOLS = {"uber": "of arXiv 1712.06567", "gymnasium": "of Gymnasium's AtariPreprocessing"}


@settings
class AtariOptions:
    """Options of Atari games: the table [env.options] of a configuration."""

    protocol: Literal["uber", "gymnasium"] = "uber"
    """Episode starts and observations: as in arXiv 1712.06567, or as in Gymnasium's AtariPreprocessing and
    FrameStackObservation. Gymnasium's names, such as ALE/Frostbite-v5, imply "gymnasium"."""
    repeat_action_probability: Annotated[float, Strict(), Field(ge=0, le=1)] = 0.0
    """Sticky actions: probability that a frame repeats the previous frame's action. ALE/*-v5 and *NoFrameskip-v0 imply
    0.25."""
    full_action_space: bool = False
    """Use all 18 actions of the console (9 in Skiing and Lost Luggage) instead of the game's minimal action set."""
    mode: Annotated[_Whole, Field(ge=0, le=_MAX_INT)] | None = None
    """Game mode, as numbered by ALE; None selects the game's default."""
    difficulty: Annotated[_Whole, Field(ge=0, le=_MAX_INT)] | None = None
    """Game difficulty, as numbered by ALE; None selects the game's default."""
    frame_skip: Annotated[_Whole, Field(ge=1, le=1000)] = 4
    """Emulator frames per step; the action is repeated in each."""
    noop_max: Annotated[_Whole, Field(ge=0, le=1000)] = 30
    """Maximum number of no-op frames at the start of an episode, drawn from 1 to this by its seed; 0 disables them."""
    terminal_on_life_loss: bool = False
    """End the episode when a life is lost."""
    stack: Annotated[_Whole, Field(ge=1, le=16)] = 4
    """Number of stacked frames in an observation (protocol "gymnasium" only)."""
    screen_size: Annotated[_Whole, Field(ge=32, le=160)] = 84
    """Height and width of a frame in pixels (protocol "gymnasium" only)."""
    grayscale: bool = True
    """Use grayscale frames instead of RGB (protocol "gymnasium" only)."""
    emulator: Literal["neuroevo", "ale"] = "neuroevo"
    """Emulator of the console: neuroevo's, or the Arcade Learning Environment's, which gives identical results more
    slowly."""
    channels_first: bool = False
    """Return observations as [channels, height, width], as PyTorch expects them; networks of this package expect
    [height, width, channels]."""
    behavior: Annotated[tuple[_ByteOrName, ...], BeforeValidator(listed)] = ()
    """RAM bytes that form the behavior of an episode, by number from 0 to 127 or, if the game defines names, by name,
    such as "room" and "player_x"; empty selects all bytes."""


class AtariGame(Environment):
    """Atari game, implemented in custom_ops/envs/atari."""

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
        """Return the single-player games whose ROMs ale-py ships, in snake case, sorted."""
        from ale_py import roms

        return tuple(sorted(rom for rom in roms.get_all_rom_ids() if rom not in _MULTIPLAYER_ONLY))

    @classmethod
    def key(cls, given_name: str) -> str:
        """Return the lookup key of a name, without Gymnasium's prefix, suffix and version."""
        return key_of(_parts(given_name)[1])

    @classmethod
    def find(cls, given_name: str) -> str | None:
        """Return the game of a name of any version, such as ALE/Frostbite-v5; check() validates the version."""
        return cls._by_key().get(cls.key(given_name))

    @classmethod
    def gymnasium_ids(cls) -> Mapping[str, str]:
        """Return the mapping of ids to ALE's names, such as Frostbite-v5 to ALE/Frostbite-v5."""
        return {f"{_title(game)}-v5": f"ALE/{_title(game)}-v5" for game in cls.names()}

    @classmethod
    def named_options(cls, given_name: str) -> Mapping[str, Any]:
        """Return the settings that Gymnasium registers for the name; a bare name uses the protocol "uber"."""
        prefix, _, suffix, version = _parts(given_name)
        if not (prefix or suffix or version):
            return {}
        sticky = _STICKY.get(int(version or 5))
        return {} if sticky is None else {"protocol": "gymnasium", "repeat_action_probability": sticky}

    @property
    def rules(self) -> str:
        """Description of the protocol, sticky actions, and other options that differ from the defaults."""
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
        """The RAM bytes of the behavior."""
        chosen = self.options.behavior or range(_RAM_BYTES)
        return [Measure(byte if isinstance(byte, str) else f"RAM {byte}", 0, 255) for byte in chosen]

    def check(self) -> list[Problem]:
        """Report an unknown or unsupported version, a missing or damaged ROM, and invalid options."""
        wrong = self._wrong_version()
        if wrong is None:
            try:
                _rom_path(self.name)
            except UserError as error:
                wrong = str(error)
        found = [] if wrong is None else [Problem("env.name", wrong, self.given_name)]
        for key, value in _SCREEN_OF_2018.items() if self.options.protocol == "uber" else ():
            if getattr(self.options, key) != value:
                expected = f'expected {option_text(value)} with protocol = "uber", or protocol = "gymnasium"'
                found.append(Problem(f"env.options.{key}", expected, getattr(self.options, key)))
        known = RAM_NAMES.get(self.name, {})
        named = f", or one of {', '.join(known)}" if known else ""
        for place, byte in enumerate(self.options.behavior):
            if byte in known if isinstance(byte, str) else 0 <= byte < _RAM_BYTES:
                continue
            expected = f"expected RAM bytes from 0 to {_RAM_BYTES - 1}{named}{did_you_mean(str(byte), known)}"
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
        """Return why a name's version or suffix is invalid or unsupported; None if the name is supported."""
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
    """Split a name into (prefix, game, suffix, version); missing parts are ""."""
    found = _REGISTERED.fullmatch(name.strip())
    return ("", name, "", "") if found is None else (found[1] or "", found[2], found[3] or "", found[4] or "")


def _title(game: str) -> str:
    """Convert a game's name to Gymnasium's camel case, such as MsPacman."""
    return game.title().replace("_", "")


def _rom_path(game: str) -> str:
    """Return the path of a game's ROM. UserError: the ROM is missing or damaged."""
    from ale_py import roms

    try:
        with contextlib.redirect_stdout(io.StringIO()):  # ale-py prints a line when ALE_ROMS_DIR is set
            return str(roms.get_rom_path(game))
    except OSError as error:
        why = f"there is no {error.filename}" if error.filename else " ".join(str(error).split())
        raise UserError(f"the ROM of '{game}' cannot be used: {why} (reinstall ale-py or set ALE_ROMS_DIR)") from None
