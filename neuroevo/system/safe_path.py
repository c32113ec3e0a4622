"""Keep other Python processes from importing modules from the current folder, whose files may be a stranger's.

Python puts the current folder first on the path of `python -c` and `python -m`.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path


def python_command(code: str) -> tuple[str, ...]:
    """Return the command of a Python process that does not look for modules in the current folder.

    Args:
        code: What it runs, in which sys is imported.
    """
    return sys.executable, "-P", "-c", f"import sys; {code}"


def safe_variables() -> dict[str, str]:
    """Return environment variables for a process whose own Python processes shall not look there either."""
    return {"PYTHONSAFEPATH": "1", **glfw_variables()}


def glfw_variables() -> dict[str, str]:
    """Return environment variables that tell the package glfw its library.

    MuJoCo imports glfw, which otherwise starts `python -c` to ask each library that it finds for its version. The
    result is empty where the user has chosen a library, or where the package comes without one.
    """
    spec = find_spec("glfw")
    if os.environ.get("PYGLFW_LIBRARY") or spec is None or spec.origin is None:
        return {}
    variant = os.environ.get("PYGLFW_LIBRARY_VARIANT") or os.environ.get("XDG_SESSION_TYPE", "")
    folder = "wayland" if variant.lower() == "wayland" else "x11"  # as the package chooses
    library = Path(spec.origin).parent / folder / "libglfw.so"
    return {"PYGLFW_LIBRARY": str(library)} if library.is_file() else {}
