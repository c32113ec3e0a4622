"""Write a configuration as documented TOML: every key with its value and its documentation as a comment."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neuroevo.algorithms.registry import NAMES
from neuroevo.config.load import make_config
from neuroevo.config.schema import SECTIONS, Config
from neuroevo.config.sources import apply
from neuroevo.core.problems import inline
from neuroevo.core.settings import documentation
from neuroevo.envs import registry


def start(overrides: Sequence[str] = ()) -> Config:
    """Return an initial configuration: the defaults, with overrides.

    The keys without a default are set to the game Frostbite and the paper's budget of 250 million steps. The network is
    mlp if the environment is known to have vector instead of image observations.

    Args:
        overrides: Changes to keys, such as "training.seed=3".

    Returns:
        A valid configuration.

    Raises:
        UserError: An override is not KEY=VALUE or makes the configuration invalid.
    """
    tables: dict[str, dict[str, Any]] = {"env": {"name": "frostbite"}, "training": {"total_steps": 250_000_000}}
    for override in overrides:
        apply(tables, override)
    env, options = tables["env"].get("name"), tables["env"].get("options")
    known = registry.check(env, options if isinstance(options, dict) else {})[0] if isinstance(env, str) else None
    if known is not None and known.image_observations is False:
        tables.setdefault("network", {}).setdefault("name", "mlp")
    return make_config(tables)


def documented(config: Config) -> str:
    """Write a configuration with every key and its documentation.

    Args:
        config: The configuration to write.

    Returns:
        TOML text that loads as the same configuration; unset keys are commented out.
    """
    tables, parts = config.tables(), []
    for name in SECTIONS:
        settings, table = getattr(config, name), tables.get(name, {})
        own = [f"[{name}]"]
        if name == "algorithm":
            known = f"# One of {NAMES}; the other keys are the algorithm's settings."
            own += [known, f"name = {inline(table['name'])}"]
        keys = [key for key in settings.__pydantic_fields__ if key != "options"]
        parts.append([*_comment(settings.__doc__), *own, *_keys(settings, table, keys)])
        if name == "env":
            options = config.environment.options_type()
            keys = list(options.__pydantic_fields__)
            parts.append([*_comment(options.__doc__), "[env.options]", *_keys(options, config.env.options, keys)])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _keys(settings: Any, table: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Yield the TOML lines of a settings object's keys.

    Args:
        settings: Instance of the class that declares the keys; provides the values of keys that `table` lacks.
        table: Values that are set.
        keys: Names of the keys, in the order of the lines.
    """
    for key in keys:
        yield from _comment(documentation(type(settings), key))
        if key in table:
            yield f"{key} = {inline(table[key])}"
        else:
            default = getattr(settings, key)
            yield f"# {key} =" if default is None else f"# {key} = {inline(default)}"


def _comment(text: str | None) -> list[str]:
    """Convert text to comment lines; no lines for None, from an external algorithm without documentation."""
    return ["# " + line for line in inspect.cleandoc(text or "").splitlines()]
