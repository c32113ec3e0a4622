"""What holds processes, threads or memory until it is closed: at the end of a `with` block, or once it has failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

_Own = TypeVar("_Own", bound="Closing")


class Closing(ABC):
    """Base of what has to be closed."""

    @abstractmethod
    def close(self) -> None:
        """Frees what it holds. May be called more than once."""

    def __enter__(self: _Own) -> _Own:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """Closes it when what the block does fails or is interrupted."""
        try:
            yield
        except BaseException:
            self.close()
            raise
