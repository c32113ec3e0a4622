"""Callbacks after the import of a package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def once_imported(name: str, what: Callable[[], object]) -> None:
    """Call a function after a package is imported, or immediately if it has been imported already.

    Args:
        name: Name of the package.
        what: The function.
    """
    if name in sys.modules:
        what()
    else:
        sys.meta_path.insert(0, _Finder(name, what))


class _Finder(MetaPathFinder):
    """Finder that delegates a package's import to other finders and calls a function after its loader has finished."""

    def __init__(self, name: str, what: Callable[[], object]):
        self._name, self._what = name, what

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See MetaPathFinder."""
        if fullname != self._name:
            return None
        others = (each.find_spec(fullname, path, target) for each in [*sys.meta_path] if each is not self)
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_call(module: ModuleType) -> None:
                load(module)
                if self in sys.meta_path:  # false if the module is reloaded
                    sys.meta_path.remove(self)
                    self._what()

            spec.loader.exec_module = load_and_call  # type: ignore[method-assign]
        return spec
