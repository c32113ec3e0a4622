"""Implementations that the sweeps in experiments/sweeps compare with neuroevo on Brax's tasks.

Each trains the evolution strategy of a configuration with `env.name = "brax:TASK"`. JAX is imported only after it has
been configured for the configuration's devices.
"""

from __future__ import annotations

from pathlib import Path

from experiments.peers.experiment import Experiment
from neuroevo.config.schema import Config
from neuroevo.sweeps.implementations import Report


def brax_es(config: Config, folder: Path, report: Report) -> None:  # noqa: ARG001
    """Train Brax's own evolution strategy on Brax."""
    experiment = started(config)
    from experiments.peers import brax_strategy

    brax_strategy.evolve(experiment, report)


def evosax_es(config: Config, folder: Path, report: Report) -> None:  # noqa: ARG001
    """Train evosax's OpenAI-ES on Brax."""
    experiment = started(config)
    from experiments.peers import evosax_strategy

    evosax_strategy.evolve(experiment, report)


def gymnasium_model(config: Config, folder: Path, report: Report) -> None:
    """Train neuroevo on its C++ lanes with Gymnasium's task of the same robot."""
    from experiments.peers import native

    native.evolve(Experiment.of(config), folder, report, brax_model=False)


def brax_model(config: Config, folder: Path, report: Report) -> None:
    """Train neuroevo on its C++ lanes with Gymnasium's task and Brax's model of the robot."""
    from experiments.peers import native

    native.evolve(Experiment.of(config), folder, report, brax_model=True)


def started(config: Config) -> Experiment:
    """Return the experiment of a configuration, and configure JAX for it."""
    experiment = Experiment.of(config)
    from neuroevo.accelerated.start import start_jax

    start_jax(experiment.devices)
    return experiment
