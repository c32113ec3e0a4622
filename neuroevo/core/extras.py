"""Checks for the optional packages in the extras of pyproject.toml."""

from __future__ import annotations

from importlib.util import find_spec

from neuroevo.core.errors import UserError


def missing(extra: str, *packages: str) -> str | None:
    """Return a message if packages of an extra are not installed.

    Args:
        extra: Name of the extra, such as "cluster".
        packages: Import names of the packages.

    Returns:
        The message with the packages and the command that installs them, or None if all are installed.
    """
    absent = [package for package in packages if find_spec(package) is None]
    if not absent:
        return None
    return f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed: pip install 'neuroevo[{extra}]'"


def require(extra: str, *packages: str) -> None:
    """Check that packages of an extra are installed.

    Args:
        extra: Name of the extra, such as "cluster".
        packages: Import names of the packages.

    Raises:
        UserError: A package is not installed.
    """
    if message := missing(extra, *packages):
        raise UserError(message)
