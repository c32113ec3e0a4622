"""Names of environments, as users know them, and what the env pool needs to make them."""

from __future__ import annotations

import contextlib
import functools
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

from neuroevo.errors import UserError, did_you_mean

# ALE has ROMs of these but no single-player mode.
_MULTIPLAYER_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})


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


def resolve(name: str, options: Mapping[str, object] | None = None) -> EnvRecipe:
    """Finds a game by any of its usual names: frostbite, Frostbite, ALE/Frostbite-v5, FrostbiteNoFrameskip-v4.

    Raises UserError for an unknown name, with the nearest known one, and for a missing ROM.
    """
    by_key = {_key(game): game for game in games()}
    key = _key(re.sub(r"^ALE/|(NoFrameskip|Deterministic)?-v\d+$", "", name.strip()))
    if key not in by_key:
        raise UserError(f"game '{name}' is unknown{did_you_mean(key, by_key)} (`neuroevo info` lists the games)")
    game = by_key[key]
    given = tuple(f"{option}={value}" for option, value in (options or {}).items())
    return EnvRecipe(game, "atari", (f"rom={_rom_path(game)}", *given))


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _rom_path(game: str) -> str:
    from ale_py import roms

    with contextlib.redirect_stdout(io.StringIO()):  # ale-py prints a line when ALE_ROMS_DIR is set
        path = roms.get_rom_path(game)
    if path is None or not path.is_file():
        raise UserError(f"ROM of '{game}' not found, expected {path}: reinstall ale-py or set ALE_ROMS_DIR")
    return str(path)
