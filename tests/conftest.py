"""Tests interrupt themselves and their children, also where that is ignored, as in background jobs and under nohup."""

import gc
import json
import os
import signal
import tempfile

import pytest
from hypothesis import settings

signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_configure(config):
    """What JAX compiles for one test the others load, in whatever process; nothing is written to the user's folder.

    The key that runs are signed with is one of the tests' own.

    JAX looks at the variable once, when it is imported, which TensorFlow does where tests are collected. And Python
    keeps what it compiles, though the user may not want that: hundreds of processes import the package.

    Hypothesis tries the same examples every time, so that a change does not fail by what another one did; --thorough
    tries new ones. No test asserts a time.
    """
    settings.register_profile("neuroevo", deadline=None, derandomize=not config.getoption("--thorough"))
    settings.load_profile("neuroevo")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="neuroevo-jax-")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name  # which xdist's workers get as well
        config.add_cleanup(folder.cleanup)
        state = tempfile.TemporaryDirectory(prefix="neuroevo-state-")
        os.environ["XDG_STATE_HOME"] = state.name
        config.add_cleanup(state.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is imported and collected stays: Python's collector need not look at it, now or in thousands of tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_addoption(parser):
    parser.addoption("--thorough", action="store_true", help="run tests that are marked as thorough, too")


def pytest_collection_modifyitems(config, items):
    """Files with slow tests first, so that of several processes none is left alone with one of them at the end.

    Thorough tests are left out unless they are asked for.
    """
    if not config.getoption("--thorough"):
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(autouse=True)
def same_interrupt():
    """A test that leaves a handler of SIGINT behind fails, not one that is interrupted later."""
    yield
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert handler is signal.default_int_handler


@pytest.fixture(params=["native", "tensorflow"])
def engine(request):
    """Each engine, for tests of what both must do alike."""
    return request.param


@pytest.fixture(scope="session")
def toy_command():
    """Runs a command line of neuroevo with a ToyEvaluator in a process of its own, which imports no TensorFlow."""
    from tests.support.commands import toy_server  # here: not all tests can import the package

    with toy_server() as run:
        yield run


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """The results of a run without a stop; it is made once for all tests that ask for the same changes."""
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
