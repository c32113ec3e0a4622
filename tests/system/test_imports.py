"""Callbacks after the import of a package."""

import importlib
import sys

import pytest

from neuroevo.system.imports import once_imported


@pytest.fixture
def package(tmp_path, monkeypatch):
    (tmp_path / "some_package_of_a_test.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    yield "some_package_of_a_test"
    sys.modules.pop("some_package_of_a_test", None)


def test_it_is_called_once_when_the_package_is_there(package):
    called = []
    once_imported(package, lambda: called.append(sys.modules[package].value))
    assert importlib.util.find_spec(package) is not None and called == []  # finding a package does not import it
    module = importlib.import_module(package)
    importlib.reload(module)
    assert called == [3]
    once_imported(package, lambda: called.append("at once"))
    assert called == [3, "at once"]


def test_a_package_that_fails_may_be_imported_again(package, tmp_path):
    called = []
    once_imported(package, lambda: called.append(True))
    source = tmp_path / f"{package}.py"
    source.write_text("raise ValueError\n")
    with pytest.raises(ValueError):
        importlib.import_module(package)
    source.write_text("value = 4\n")
    importlib.invalidate_caches()
    importlib.import_module(package)
    assert called == [True]
    assert importlib.util.find_spec("a_package_that_nobody_has") is None
