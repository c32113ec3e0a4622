"""What the native core makes environments of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EnvRecipe:
    """What EnvPoolMake takes: name of the family and its options, and the name to show."""

    name: str
    family: str
    options: tuple[str, ...]
