"""The one file of Plotly that the page needs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from neuroevo.core.errors import UserError


def plotly_script() -> Path:
    """Return the file of Plotly's JavaScript. The package itself, which takes half a second to import, is not needed.

    Raises:
        UserError: It is missing.
    """
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path
    raise UserError("the package plotly lacks package_data/plotly.min.js: pip install 'neuroevo[inspect]'")
