"""That every Python which pyproject.toml promises can have the versions it pins, by what the installed packages say."""

from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from neuroevo.system.reading import tomllib

ROOT = Path(__file__).parents[2]
TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = TABLES["project"]
PYTHONS = [f"3.{minor}" for minor in range(30) if f"3.{minor}" in SpecifierSet(PROJECT["requires-python"])]
EXTRAS = PROJECT["optional-dependencies"].values()
PINS = [Requirement(line) for lines in (PROJECT["dependencies"], *EXTRAS) for line in lines]


def test_the_pythons_are_those_of_the_readme():
    assert f"with Python {PYTHONS[0]} to {PYTHONS[-1]}:" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: pin.name)
def test_every_python_has_the_pinned_version(pin):
    try:
        installed = version(pin.name)
    except PackageNotFoundError:
        pytest.skip(f"{pin.name} is not installed here")  # an extra may be left out
    expected = [other.specifier for other in PINS if other.name == pin.name]  # extras may exclude each other
    assert any(installed in each for each in expected), f"{pin.name} {installed} is installed; expected {expected}"
    allowed = SpecifierSet(metadata(pin.name).get("Requires-Python", ""))
    wanting = [python for python in PYTHONS if python not in allowed and _marked(pin, python)]
    assert not wanting, f"{pin}: needs Python {allowed}, which leaves out {', '.join(wanting)}"


def test_wheels_are_built_against_what_is_installed_with_them():
    (wheel,) = [each for each in TABLES["tool"]["scikit-build"]["overrides"] if each["if"]["state"] == "wheel"]
    against = {*wheel["build"]["requires"], *TABLES["build-system"]["requires"]}
    pinned = {str(pin) for pin in PINS}
    assert {line for line in against if not line.startswith("pip==")} <= pinned
    assert any(line.startswith("tensorflow==") for line in against)


def _marked(pin, python):
    """Whether the pin is for this Python, such as one for `python_version >= "3.12"`."""
    return pin.marker is None or pin.marker.evaluate({"python_version": python})
