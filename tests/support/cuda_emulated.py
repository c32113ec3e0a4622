"""The GPU backend on the CPU (custom_ops/gpu/emulated): loaded, it is the population backend "cuda_emulated"."""

from __future__ import annotations

import functools
from ctypes import CDLL
from pathlib import Path

import pytest

from neuroevo.native import library

LIBRARY = Path(__file__).parents[2] / "build/native/tests/libneuroevo_cuda_emulated.so"  # of `make test-native`


@functools.cache
def _load() -> CDLL:
    library.core()
    return library.load_cuda(LIBRARY)


def load() -> CDLL:
    """Load the library and return its C interface. Skip the test if it is not built."""
    if not LIBRARY.is_file():
        pytest.skip(f"{LIBRARY} is not built: `make test-native` does")
    return _load()
