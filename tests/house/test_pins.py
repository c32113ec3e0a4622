"""Dependencies: pyproject.toml has what is allowed, constraints.txt what is tested, for every supported Python."""

from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from neuroevo.system.reading import tomllib

ROOT = Path(__file__).parents[2]
TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = TABLES["project"]
PYTHONS = [f"3.{minor}" for minor in range(30) if f"3.{minor}" in SpecifierSet(PROJECT["requires-python"])]
EXTRAS = PROJECT["optional-dependencies"]
LOCKED = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] not in "# "]
ALLOWED = [
    Requirement(line)
    for lines in (PROJECT["dependencies"], *(EXTRAS[name] for name in EXTRAS if name != "playground"))
    for line in lines
    if not line.startswith("neuroevo[")
]


def test_the_pythons_are_those_of_the_readme():
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]} (" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("allowed", ALLOWED, ids=str)
def test_one_allowed_version_is_locked(allowed, python):
    (version,) = _locked(allowed.name, python)
    assert version in allowed.specifier


@pytest.mark.parametrize("name", sorted({locked.name for locked in LOCKED if "sys_platform" not in str(locked.marker)}))
def test_locked_versions_are_installed_and_support_every_python(name):
    try:
        installed = version(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")  # it may be of an extra that is left out
    supported = SpecifierSet(metadata(name).get("Requires-Python", ""))
    pythons = [python for python in PYTHONS if installed in _locked(name, python)]
    assert pythons, f"{name} {installed} is installed; constraints.txt has {[*_locked(name, PYTHONS[0])]}"
    assert all(supported.contains(f"{python}.9") for python in pythons), f"{name} {installed} needs Python {supported}"


def test_wheels_are_built_against_what_is_installed_with_them():
    (wheel,) = [each for each in TABLES["tool"]["scikit-build"]["overrides"] if each["if"]["state"] == "wheel"]
    against = {*wheel["build"]["requires"], *TABLES["build-system"]["requires"]}
    lines = {*PROJECT["dependencies"], *EXTRAS["tensorflow"], *EXTRAS["native"]}
    assert against - {"pip"} <= lines and {*EXTRAS["tensorflow"], *EXTRAS["native"]} <= against


def _locked(name, python):
    """Return the versions that the lock has of a package for a Python, at most one."""
    environment = {"python_version": python, "python_full_version": f"{python}.9"}
    return [
        specifier.version
        for locked in LOCKED
        if canonicalize_name(locked.name) == canonicalize_name(name)
        and (locked.marker is None or locked.marker.evaluate(environment))
        for specifier in locked.specifier
    ]
