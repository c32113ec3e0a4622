"""What the families of environments share: how names are compared, and how options are written for the native code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import SequenceMatcher

from neuroevo.core.problems import nearest


def key_of(name: str) -> str:
    """What of a name decides: its letters and digits, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def nearest_of(key: str, known: Mapping[str, str]) -> tuple[float, str] | None:
    """What EnvFamily.nearest() returns.

    Args:
        key: What of a name decides.
        known: Full names of environments by what of them decides.
    """
    close = nearest(key, known)
    return None if close is None else (SequenceMatcher(None, key, close).ratio(), known[close])


def option_text(value: object) -> str:
    """An option's value as the native code reads it."""
    if isinstance(value, tuple):
        return ",".join(map(repr, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def reward_threshold(env_id: str) -> float | None:
    """The mean return at which Gymnasium's registry calls an environment solved; None where it does not say.

    Args:
        env_id: Its name there.
    """
    import gymnasium

    spec = gymnasium.registry.get(env_id)
    return None if spec is None else spec.reward_threshold
