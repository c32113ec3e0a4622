"""Suggestions for unknown keys of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from neuroevo.config import uber2018
from neuroevo.core.problems import NO_VALUE, Problem, nearest

_ALIKE_ELSEWHERE = 0.7  # minimum similarity to a key of another section, stricter than nearest()


def respell(
    table: Mapping[str, Any], section: str, keys: Mapping[str, Sequence[str]], problems: list[Problem], where: str
) -> dict[str, Any]:
    """Return a table with only valid keys, and with misspelt keys replaced by the closest valid ones.

    The replacement avoids further problems, such as a missing key, from the same mistake.

    Args:
        table: The table as given by the user.
        section: Name of the table's section; "" for the file itself, whose keys are the sections.
        keys: The valid keys of each section.
        problems: List to which a problem is appended for each unknown key.
        where: Description of the section's keys, for messages.
    """
    own = list(keys) if section == "" else keys[section]
    known = {key: value for key, value in table.items() if key in own}
    for key, value in table.items():
        if key in own:
            continue
        meant, hint = _suggestion(key, section, keys, own)
        name = key if section == "" else f"{section}.{key}"
        kind = "section" if section == "" else "key"
        reason = f"there is no such {kind}{hint} ({where}: {', '.join(own)})"
        problems.append(Problem(name, reason, NO_VALUE if isinstance(value, Mapping) else value))
        if meant in own:
            known.setdefault(meant, value)
    return known


def _suggestion(key: str, section: str, keys: Mapping[str, Sequence[str]], own: Iterable[str]) -> tuple[str, str]:
    """Return the valid key that is closest to a misspelt key of a section, and '; did you mean X?'; or two ''.

    Candidates are the keys of this section, of other sections, and of the 2018 code.
    """
    suggestions = {name: (ours, f"{ours}, the 2018 code's {name}") for name, ours in uber2018.KEYS.items()}
    for other, names in keys.items():
        if other != section:
            suggestions |= {name: (f"{other}.{name}", f"{other}.{name}") for name in names if name != "name"}
    suggestions |= {name: (name, name) for name in own}
    near = nearest(key, suggestions)
    if near is None or (near not in own and SequenceMatcher(None, key, near).ratio() < _ALIKE_ELSEWHERE):
        return "", ""
    meant, text = suggestions[near]
    return meant.removeprefix(f"{section}."), f"; did you mean {text}?"
