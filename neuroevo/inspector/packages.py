"""The packages of the extra `inspect`, and the one file of Plotly that the page needs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from neuroevo.core.errors import UserError

_PACKAGES = ("starlette", "uvicorn", "plotly")


def require_packages() -> None:
    """Checks that what serves and draws the page is installed.

    Raises:
        UserError: A package is missing.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UserError(f'inspect needs {", ".join(missing)}, which is not installed: pip install "neuroevo[inspect]"')


def plotly_script() -> Path:
    """The file of Plotly's JavaScript. The package itself, which takes half a second to import, is not needed.

    Raises:
        UserError: It is missing.
    """
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path
    raise UserError('the package plotly lacks package_data/plotly.min.js: pip install "neuroevo[inspect]"')
