"""The one exception that means: the user asked for something that cannot be (exit code 2, one clear line)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake in a command, a configuration or a path. The message names the value and what was expected."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean X?' for the known word nearest to `word`, or '' when none is near."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
