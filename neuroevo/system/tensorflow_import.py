"""Imports TensorFlow without its remarks about oneDNN and CUDA, which no log level of its own silences (2.21)."""

from __future__ import annotations

import os
import sys
import tempfile


def load_tensorflow() -> None:
    """Imports TensorFlow; what it writes to standard error meanwhile is shown only if the import fails."""
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # with 2, a missing GPU is an error; real ones are exceptions
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
