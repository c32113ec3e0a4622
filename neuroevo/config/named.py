"""External code and models referenced by a configuration's tables, listed before the tables are checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroevo.core.named_code import NamedCode, named_module
from neuroevo.core.user_module import names
from neuroevo.envs import registry

_OURS = ("none", "local")  # addresses that join no running cluster


def named_code(tables: Mapping[str, Any]) -> list[NamedCode]:
    """List the external code and models that a configuration references.

    Args:
        tables: The unchecked sections by name.

    Returns:
        The references, in the order [env], [network], [algorithm], [cluster].
    """
    return [*_of_env(_table(tables, "env")), *_of_modules(tables), *_of_cluster(_table(tables, "cluster"))]


def _of_env(env: Mapping[str, Any]) -> list[NamedCode]:
    name, options = env.get("name"), env.get("options")
    known = registry.family_of(name) if isinstance(name, str) else None
    if known is None:
        return []
    return known[0].named_code(str(name), options if isinstance(options, Mapping) else {})


def _of_modules(tables: Mapping[str, Any]) -> list[NamedCode]:
    found = []
    for section in ("network", "algorithm"):
        name = _table(tables, section).get("name")
        parts = names(name) if isinstance(name, str) else None
        if parts is not None and section == "network":  # the function is called, so even the package's own are listed
            found.append(NamedCode("network.name", f"calls {parts[1]} of the module {parts[0]}", module=parts[0]))
        elif parts is not None:
            found += named_module("algorithm.name", parts[0])
    return found


def _of_cluster(cluster: Mapping[str, Any]) -> list[NamedCode]:
    """List the use of a running cluster, whose machines send pickles, which execute code."""
    address = cluster.get("address", "none")
    if address in _OURS:
        return []
    where = "that RAY_ADDRESS names or that runs on this machine" if address == "auto" else f"at {address}"
    return [NamedCode("cluster.address", f"joins the Ray cluster {where}", when_training=True)]


def _table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = tables.get(name)
    return table if isinstance(table, Mapping) else {}
