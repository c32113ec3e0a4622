"""Path of Plotly's JavaScript file."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from neuroevo.core.errors import UserError


def plotly_script() -> Path:
    """Find Plotly's JavaScript file without importing the package, which would take half a second.

    Raises:
        UserError: The file is missing.
    """
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path
    raise UserError("the package plotly lacks package_data/plotly.min.js: pip install 'neuroevo[inspect]'")
