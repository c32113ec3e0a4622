"""Python's TOML reader, which Python 3.10 does not have yet."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]  # only Python 3.10 needs and installs it

__all__ = ["tomllib"]
