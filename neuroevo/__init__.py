"""Neuroevolution of deep networks on one desktop.

The functions that scripts need are here, and each is loaded when it is first used:

    train          trains a run, or goes on with one, and returns it
    open_run       opens a run's folder: its metrics, elites, population, evaluations and videos
    evaluate       replays the elite of a run over many episodes
    Callback       receives the events of a run; the base class of your own
    Stop           finishes a run, raised by a callback
    Patience       a callback that finishes a run whose metric has not risen for some generations
    load_config    loads a configuration from a file or preset
    make_config    makes a configuration from tables
    push           uploads a run to the Hugging Face Hub
    pull           downloads one from there
    make_vec       makes environments as a gymnasium.vector.VectorEnv

The environments are registered with Gymnasium, too: gymnasium.make("neuroevo/Frostbite-v5") and make_vec().

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
    if "neuroevo.envs.gymnasium.worker" not in sys.modules:  # a process for environments of others
        import_module("neuroevo.envs.gymnasium_ids")


once_imported("gymnasium", _register)
