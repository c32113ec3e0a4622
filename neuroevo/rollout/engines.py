"""The two engines, and the choice between them.

With "native" the lanes are threads of the native core; with "tensorflow" they are TensorFlow graphs, by custom ops over
the same core. Every episode's outcome is bit-identical with both.
"""

from __future__ import annotations

from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.population import Population
from neuroevo.native.rollout import Rollout
from neuroevo.rollout.engine import Engine

ENGINES = ("auto", "native", "tensorflow")
NATIVE = Engine(EnvPool, Population, Rollout)
"""Lanes are threads of the native core. TensorFlow is not imported."""


def chosen_engine(name: str) -> str:
    """Resolve the name of an engine; "auto" selects the native core.

    Args:
        name: "auto", "native" or "tensorflow".

    Returns:
        "native" or "tensorflow".

    Raises:
        UserError: There is no such engine.
    """
    if name not in ENGINES:
        raise UserError(f"engine '{name}' is unknown{did_you_mean(name, ENGINES)}, expected auto, native or tensorflow")
    return "native" if name == "auto" else name


def make_engine(name: str, lanes: int) -> Engine:
    """Create the engine with a name. The TensorFlow engine imports TensorFlow, which takes seconds.

    Args:
        name: "auto", "native" or "tensorflow".
        lanes: Number of lanes that the engine will run.

    Raises:
        UserError: There is no such engine, or TensorFlow is not installed.
        ImportError: TensorFlow cannot be imported.
    """
    if chosen_engine(name) == "native":
        return NATIVE
    from neuroevo.rollout.tensorflow_import import load_tensorflow

    load_tensorflow()
    from neuroevo.rollout.tensorflow.engine import tensorflow_engine

    return tensorflow_engine(lanes)
