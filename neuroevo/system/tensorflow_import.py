"""Imports TensorFlow without its messages about oneDNN and CUDA, which none of its log levels silences (2.21)."""

from __future__ import annotations

import os
import sys
import tempfile


def load_tensorflow() -> None:
    """Imports TensorFlow and shows what it writes to standard error only if the import fails.

    Raises:
        ImportError: TensorFlow cannot be imported.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # 2 still reports a missing GPU; real errors are exceptions
    sys.stderr.flush()
    with tempfile.TemporaryFile() as remarks:
        terminal = os.dup(2)
        os.dup2(remarks.fileno(), 2)
        try:
            import tensorflow  # noqa: F401
        except ImportError:
            remarks.seek(0)
            os.write(terminal, remarks.read())
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
