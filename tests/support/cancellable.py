"""Cancellation of TensorFlow functions that run in several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tensorflow.python.eager import cancellation  # public code has no other way to cancel a step


class _OfThread(threading.local):
    manager: cancellation.CancellationManager | None = None


_of_thread = _OfThread()
# TensorFlow stores the manager of the function that is called in a global variable, so that a function that is called
# by another thread at the same time gets a wrong manager, or none.
cancellation.context = lambda: _of_thread.manager


def cancellable(function: Callable[..., Any]) -> tuple[cancellation.CancellationManager, Callable[..., Any]]:
    """Return a cancellation manager, and `function` such that the manager's `start_cancel` cancels a call of it.

    Args:
        function: A concrete function.
    """
    manager = cancellation.CancellationManager()

    def call(*args: Any) -> Any:
        _of_thread.manager = manager
        try:
            return function(*args)
        finally:
            _of_thread.manager = None

    return manager, call
