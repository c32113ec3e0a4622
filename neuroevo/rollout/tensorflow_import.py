"""Import of TensorFlow without its messages about oneDNN and CUDA, which no log level of it silences (2.21)."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from neuroevo.core.extras import require

_OPTIONAL = ("pandas", "matplotlib", "scipy", "jax")  # Keras and other packages import them if they are installed
_lean = False


def skip_optional_imports() -> None:
    """Make load_tensorflow() hide optional dependencies of Keras, which saves 110 MB and a second.

    Use this only in neuroevo's own processes. The packages can still be imported later.
    """
    global _lean
    _lean = True


def load_tensorflow() -> None:
    """Import TensorFlow, and show its messages on standard error only if the import fails.

    Raises:
        UserError: TensorFlow is not installed.
        ImportError: TensorFlow cannot be imported.
    """
    require("tensorflow", "tensorflow")
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # 2 still reports a missing GPU; real errors are exceptions
    if _lean and sys.stderr.isatty():  # an interactive command
        print("neuroevo: loading TensorFlow, which takes a few seconds", file=sys.stderr)
    sys.stderr.flush()
    with tempfile.TemporaryFile() as remarks:
        terminal = os.dup(2)
        os.dup2(remarks.fileno(), 2)
        try:
            with _hidden(_OPTIONAL if _lean else ()):
                import tensorflow  # noqa: F401
        except ImportError:
            remarks.seek(0)
            os.write(terminal, remarks.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


@contextmanager
def _hidden(packages: tuple[str, ...]) -> Iterator[None]:
    """Hide packages that have not been imported yet from the import system."""
    hidden = [name for name in packages if name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # makes imports fail
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
