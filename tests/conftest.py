"""Pytest configuration. SIGINT is enabled even where it is ignored, as in background jobs and under nohup."""

import gc
import json
import os
import shutil
import signal
import tempfile

import pytest
from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config):
    """Share JAX's compilation cache among all tests and processes, and write nothing to the user's folders.

    Runs are signed with a key of the tests. Folders of tests are in memory, where there is room: small runs mostly wait
    for the disk, since SQLite syncs every transaction.

    JAX reads the variable once, when it is imported, which TensorFlow does while tests are collected. Python writes
    bytecode even if the user disables it, because hundreds of processes import the package.

    Hypothesis tries the same examples every time, so that a change does not fail because of an earlier one; --thorough
    tries new examples. No test asserts a time.
    """
    settings.register_profile("neuroevo", deadline=None, derandomize=not config.getoption("--thorough"))
    settings.load_profile("neuroevo")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="neuroevo-jax-")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name  # xdist's workers inherit it
        config.add_cleanup(folder.cleanup)
        state = tempfile.TemporaryDirectory(prefix="neuroevo-state-")
        os.environ["XDG_STATE_HOME"] = state.name
        config.add_cleanup(state.cleanup)
        if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 4 << 30:
            memory = tempfile.TemporaryDirectory(prefix="neuroevo-tests-", dir="/dev/shm")
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", memory.name)  # in which pytest makes its folders
            config.add_cleanup(memory.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Exclude imported and collected objects, which persist, from garbage collection to save time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_addoption(parser):
    parser.addoption("--thorough", action="store_true", help="run tests that are marked as thorough, too")


def pytest_collection_modifyitems(config, items):
    """Run files with slow tests first, so that no process is left with a slow file at the end.

    Thorough tests are skipped unless --thorough is given.
    """
    if not config.getoption("--thorough"):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def same_interrupt():
    """Fail a test that leaves a handler of SIGINT behind, instead of a later test."""
    yield
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert handler is signal.default_int_handler


@pytest.fixture(params=["native", "tensorflow"])
def engine(request):
    """Parametrize tests of common behavior over both engines."""
    return request.param


@pytest.fixture(scope="session")
def toy_command():
    """Provide a function that runs a neuroevo command with a ToyEvaluator in a separate process without TensorFlow."""
    from tests.support.commands import toy_server  # here: not all tests can import the package

    with toy_server() as run:
        yield run


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """Provide the results of an uninterrupted run, made once for all tests that request the same changes."""
    from tests.support.runs import new_run, results  # here: most tests need nothing of them

    known = {}

    def of(**changes):
        key = json.dumps(changes)
        if key not in known:
            path = tmp_path_factory.mktemp("whole") / "run"
            new_run(path, **changes)
            known[key] = results(path)
        return known[key]

    return of
