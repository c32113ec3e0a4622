"""A configuration as TOML text that explains itself: every key, its value, and its documentation as a comment."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neuroevo.algorithms.registry import ALGORITHMS
from neuroevo.config.load import make_config
from neuroevo.config.schema import SECTIONS, Config
from neuroevo.config.sources import apply
from neuroevo.core.problems import inline
from neuroevo.envs import registry


def start(overrides: Sequence[str] = ()) -> Config:
    """The defaults with overrides; Frostbite and the paper's budget stand for what has none.

    Where observations are known to be no images the network is mlp.

    Args:
        overrides: Such as "env.name=Hopper-v5".

    Raises:
        ConfigError: What they make has problems.
        UserError: One is not KEY=VALUE.
    """
    tables: dict[str, Any] = {"env": {"name": "frostbite"}, "training": {"total_steps": 250_000_000}}
    for override in overrides:
        apply(tables, override)
    env, options = tables["env"].get("name"), tables["env"].get("options")
    known = registry.family_of(env) if isinstance(env, str) else None
    if known is not None and known[0].image_observations(options if isinstance(options, dict) else {}) is False:
        tables.setdefault("network", {}).setdefault("name", "mlp")
    return make_config(tables)


def documented(config: Config) -> str:
    """TOML text that loads as `config`; a key that is not set is a comment."""
    tables, parts = config.tables(), []
    for name in SECTIONS:
        settings, table = getattr(config, name), tables.get(name, {})
        own = [f"[{name}]"]
        if name == "algorithm":
            known = f"# One of {', '.join(ALGORITHMS)}, or module:class of your own; the other keys are its own."
            own += [known, f"name = {inline(table['name'])}"]
        keys = [key for key in settings.__pydantic_fields__ if key != "options"]
        parts.append([*_comment(settings.__doc__), *own, *_keys(settings, table, keys)])
        if name == "env":
            options = config.environment.options_type()
            keys = list(options.__pydantic_fields__)
            parts.append([*_comment(options.__doc__), "[env.options]", *_keys(options, config.env.options, keys)])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _keys(settings: Any, table: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """The lines of `keys`; settings: an object of their class, from which those that `table` lacks have the default."""
    for key in keys:
        yield from _comment(_description(type(settings), key))
        if key in table:
            yield f"{key} = {inline(table[key])}"
        else:
            default = getattr(settings, key)
            yield f"# {key} =" if default is None else f"# {key} = {inline(default)}"


def _description(kind: type, key: str) -> str | None:
    """The key's documentation, which pydantic knows of the class that declares it, but not of those derived from it."""
    declared = [vars(each).get("__pydantic_fields__", {}).get(key) for each in kind.__mro__]
    return next((field.description for field in declared if field is not None and field.description), None)


def _comment(text: str | None) -> list[str]:
    """None: an algorithm of the user's own says nothing about it."""
    return ["# " + line for line in inspect.cleandoc(text or "").splitlines()]
