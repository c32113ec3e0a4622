"""What is to happen once some other package has been imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


def once_imported(name: str, what: Callable[[], object]) -> None:
    """Call a function once a package is imported: now, if it has been.

    Args:
        name: The package.
        what: The function.
    """
    if name in sys.modules:
        what()
    else:
        sys.meta_path.insert(0, _Finder(name, what))


class _Finder(MetaPathFinder):
    """Find one package, by way of the others, and has its loader call a function when it is done."""

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
                if self in sys.meta_path:  # it is not when a module is loaded again
                    sys.meta_path.remove(self)
                    self._what()

            spec.loader.exec_module = load_and_call  # type: ignore[method-assign]
        return spec
