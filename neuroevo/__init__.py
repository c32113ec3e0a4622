"""Neuroevolution of deep networks on one desktop.

The public functions and classes, each imported on first use:

    train          train a new run or resume an existing one, and return it
    open_run       open a run's folder: its metrics, elites, population, evaluations and videos
    evaluate       replay the elite of a run over many episodes
    AskTell        base class for algorithms that wrap an optimizer with an ask-and-tell interface
    Callback       base class for callbacks that receive the events of a run
    Stop           exception that a callback raises to finish a run
    Patience       callback for early stopping: finishes a run whose metric has stopped rising
    WandbTracker   callback that logs metrics to Weights & Biases
    MlflowTracker  callback that logs metrics to MLflow
    load_config    load a configuration from a file or preset
    make_config    make a configuration from tables
    push           upload a run to the Hugging Face Hub
    pull           download a run from the Hugging Face Hub
    make_vec       make a gymnasium.vector.VectorEnv

The environments are also registered with Gymnasium, for gymnasium.make("neuroevo/Frostbite-v5") and make_vec().

Example:
    >>> import neuroevo
    >>> run = neuroevo.train("demo", {"training.generations": 3})
    >>> neuroevo.evaluate(run, episodes=30).summary.mean
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from neuroevo.core.version import VERSION
from neuroevo.system.imports import once_imported

if TYPE_CHECKING:
    from neuroevo.algorithms.ask_tell import AskTell
    from neuroevo.analysis.evaluation import evaluate_run as evaluate
    from neuroevo.analysis.hub import pull, push
    from neuroevo.analysis.run import Run as open_run
    from neuroevo.analysis.run import train
    from neuroevo.config.load import load_config, make_config
    from neuroevo.envs.vector import make_vec
    from neuroevo.training.callback import Callback, Patience, Stop
    from neuroevo.training.trackers import MlflowTracker, WandbTracker

__version__ = VERSION
__all__ = [
    "AskTell",
    "Callback",
    "MlflowTracker",
    "Patience",
    "Stop",
    "WandbTracker",
    "evaluate",
    "load_config",
    "make_config",
    "make_vec",
    "open_run",
    "pull",
    "push",
    "train",
]

_PLACES = {
    "AskTell": ("algorithms.ask_tell", "AskTell"),
    "Callback": ("training.callback", "Callback"),
    "MlflowTracker": ("training.trackers", "MlflowTracker"),
    "Patience": ("training.callback", "Patience"),
    "Stop": ("training.callback", "Stop"),
    "WandbTracker": ("training.trackers", "WandbTracker"),
    "evaluate": ("analysis.evaluation", "evaluate_run"),
    "load_config": ("config.load", "load_config"),
    "make_config": ("config.load", "make_config"),
    "make_vec": ("envs.vector", "make_vec"),
    "open_run": ("analysis.run", "Run"),
    "pull": ("analysis.hub", "pull"),
    "push": ("analysis.hub", "push"),
    "train": ("analysis.run", "train"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'neuroevo' has no attribute '{name}', expected one of {', '.join(__all__)}")
    module, attribute = _PLACES[name]
    value = globals()[name] = getattr(import_module(f"neuroevo.{module}"), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _register() -> None:
    if "neuroevo.envs.gymnasium.worker" not in sys.modules:  # not in a worker process of external environments
        import_module("neuroevo.envs.gymnasium_ids")


once_imported("gymnasium", _register)
