"""What neuroevo is compared with on Brax's tasks, as implementations for the sweeps in experiments/sweeps.

Each trains the evolution strategy of a configuration with `env.name = "brax:TASK"`. Nothing of JAX is imported before
JAX has been started with the configuration's devices.
"""

from __future__ import annotations

from pathlib import Path

from experiments.peers.experiment import Experiment
from neuroevo.config.schema import Config
from neuroevo.sweeps.implementations import Report


def brax_es(config: Config, folder: Path, report: Report) -> None:  # noqa: ARG001
    """Brax's own evolution strategy on Brax."""
    experiment = started(config)
    from experiments.peers import brax_strategy

    brax_strategy.evolve(experiment, report)


def evosax_es(config: Config, folder: Path, report: Report) -> None:  # noqa: ARG001
    """Evosax's OpenAI-ES on Brax."""
    experiment = started(config)
    from experiments.peers import evosax_strategy

    evosax_strategy.evolve(experiment, report)


def gymnasium_model(config: Config, folder: Path, report: Report) -> None:
    """neuroevo on its C++ lanes, on Gymnasium's task of the same robot."""
    from experiments.peers import native

    native.evolve(Experiment.of(config), folder, report, brax_model=False)


def brax_model(config: Config, folder: Path, report: Report) -> None:
    """neuroevo on its C++ lanes, on Gymnasium's task of the same robot with Brax's model of it."""
    from experiments.peers import native

    native.evolve(Experiment.of(config), folder, report, brax_model=True)


def started(config: Config) -> Experiment:
    """Read what is evolved, and start JAX for it."""
    experiment = Experiment.of(config)
    from neuroevo.accelerated.start import start_jax

    start_jax(experiment.devices)
    return experiment
