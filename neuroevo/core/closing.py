"""Base class of objects that hold processes, threads or memory until they are closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

_Own = TypeVar("_Own", bound="Closing")


class Closing(ABC):
    """Base class of objects that must be closed: at the end of a `with` block, or after a failure."""

    @abstractmethod
    def close(self) -> None:
        """Free the resources that the object holds. May be called more than once."""

    def __enter__(self: _Own) -> _Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """Close the object if the block fails or is interrupted."""
        try:
            yield
        except BaseException:
            self.close()
            raise
