"""Functions that the families of environments share: keys of names, and options as the native code reads them."""

from __future__ import annotations

import re


def key_of(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def option_text(value: object) -> str:
    """Write an option's value as the native code reads it."""
    if isinstance(value, tuple):
        return ",".join(map(repr, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def reward_threshold(env_id: str) -> float | None:
    """Return the mean return at which Gymnasium's registry calls an environment solved; None if it has none.

    Args:
        env_id: Its name there.
    """
    import gymnasium

    spec = gymnasium.registry.get(env_id)
    return None if spec is None else spec.reward_threshold
