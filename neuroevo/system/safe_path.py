"""Prevention of imports from the current folder, whose files may not be trusted, in other Python processes.

Python puts the current folder first on the import path of `python -c` and `python -m`.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path


def python_command(code: str) -> tuple[str, ...]:
    """Return the command of a Python process that does not import modules from the current folder.

    Args:
        code: Code to run, which may use sys.
    """
    return sys.executable, "-P", "-c", f"import sys; {code}"


def safe_variables() -> dict[str, str]:
    """Return environment variables that also keep the child processes of a process from importing from there."""
    return {"PYTHONSAFEPATH": "1", **glfw_variables()}


def glfw_variables() -> dict[str, str]:
    """Return environment variables that set the library of the package glfw.

    MuJoCo imports glfw, which otherwise starts `python -c` to query the version of each library that it finds. The
    result is empty if the user has chosen a library, or if the package contains none.
    """
    spec = find_spec("glfw")
    if os.environ.get("PYGLFW_LIBRARY") or spec is None or spec.origin is None:
        return {}
    variant = os.environ.get("PYGLFW_LIBRARY_VARIANT") or os.environ.get("XDG_SESSION_TYPE", "")
    folder = "wayland" if variant.lower() == "wayland" else "x11"  # same choice as the package's
    library = Path(spec.origin).parent / folder / "libglfw.so"
    return {"PYGLFW_LIBRARY": str(library)} if library.is_file() else {}
