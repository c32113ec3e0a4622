"""Prints the requirements of extras of pyproject.toml: python tests/house/extras.py EXTRA..."""

import sys
from pathlib import Path

from neuroevo.system.reading import tomllib

extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
print(*(requirement for name in sys.argv[1:] for requirement in extras[name]))
