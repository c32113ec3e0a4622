"""Helpers for environment families: lookup keys of names, and the text format of options for the native code."""

from __future__ import annotations

import re


def key_of(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def option_text(value: object) -> str:
    """Format an option's value for the native code."""
    if isinstance(value, tuple):
        return ",".join(map(repr, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def reward_threshold(env_id: str) -> float | None:
    """Return the reward threshold of an environment in Gymnasium's registry; None without a threshold.

    Args:
        env_id: Id of the environment in the registry.
    """
    import gymnasium

    spec = gymnasium.registry.get(env_id)
    return None if spec is None else spec.reward_threshold
