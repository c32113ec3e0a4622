"""The compared evolution strategy and its throughput on neuroevo's C++ lanes, on Gymnasium's tasks."""

from __future__ import annotations

import importlib.util
import statistics
import time
from pathlib import Path
from typing import Any

import mujoco

from experiments.peers.experiment import Experiment
from neuroevo.analysis.run import train
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.envs.brax import COUNTERPARTS
from neuroevo.networks.network import Network
from neuroevo.sweeps.implementations import Report
from neuroevo.system.files import write_atomically
from neuroevo.training.record import Record

_MANY = 200_000  # episodes, more than end during a measurement
_PARTS = 3  # measurements, of which the median counts


def evolve(experiment: Experiment, folder: Path, report: Report, brax_model: bool) -> None:
    """Train a run in the folder "run" of a trial.

    Args:
        experiment: The experiment.
        folder: The trial's folder.
        report: Function called after each generation.
        brax_model: Whether Gymnasium's task has Brax's model of the robot.
    """

    def tell(record: Record) -> None:
        report(
            steps_population=record.population.steps,
            steps_test=record.test.steps,
            seconds_total=record.seconds_total,
            steps_per_s=record.steps_per_s,
            fitness_mean=float(record.fitness.mean()),
            test_mean=record.test.mean,
            test_standard_error=record.test.standard_error,
        )

    train(configuration(experiment, folder, brax_model), out=folder / "run", command=["neuroevo"], callbacks=[tell])


def configuration(experiment: Experiment, models: Path, brax_model: bool) -> dict[str, Any]:
    """Make a run's configuration as tables; see environment()."""
    return {
        "env": environment(experiment, models, brax_model),
        "network": {
            "name": "mlp",
            "hidden": list(experiment.hidden),
            "normalize_observations": experiment.normalize_observations,
        },
        "algorithm": {
            "name": "es",
            "population": experiment.population,
            "sigma": experiment.sigma,
            "optimizer": {"type": "adam", "learning_rate": experiment.learning_rate},
            "weight_decay": 0.0,
        },
        "training": {
            "seed": experiment.seed,
            "generations": experiment.generations,
            "max_episode_steps": "env_default",
            "test_episodes": experiment.test_episodes,
        },
        "hardware": {"threads": experiment.devices},
    }


def environment(experiment: Experiment, models: Path, brax_model: bool) -> dict[str, Any]:
    """Make the section [env].

    Args:
        experiment: What is evolved.
        models: Where a changed copy of Brax's model may be written.
        brax_model: Whether to play with that model.
    """
    same = COUNTERPARTS[experiment.task]
    options: dict[str, Any] = {"max_episode_steps": experiment.episode_length}
    if brax_model:
        options["xml_file"] = str(_playable(brax_asset(same.model), models))
    return {"name": same.name, "options": options}


def brax_asset(file: str) -> Path:
    """Return the path of a Brax model. Raise UserError if Brax is not installed."""
    brax = importlib.util.find_spec("brax")
    folders = brax.submodule_search_locations if brax is not None else None
    if not folders:
        raise UserError("Brax's models come with Brax, which is not installed")
    return Path(folders[0], "envs", "assets", file)


def _playable(model: Path, models: Path) -> Path:
    """Return a model of Brax as Gymnasium's task needs it: where `rootz` slides, it must be the body's height.

    In Brax's files of Hopper and Walker2d it is initially 0, and Brax's environments read the height elsewhere.
    A joint's reference position changes no physics.
    """
    spec = mujoco.MjSpec.from_file(str(model))
    height = next((joint for joint in spec.joints if joint.name == "rootz"), None)
    if height is None or height.ref:
        return model
    height.ref = height.parent.pos[2]
    spec.compile()
    copy = models / f"brax_{model.name}"
    write_atomically(copy, spec.to_xml().encode())
    return copy.absolute()


def lane_rate(experiment: Experiment, width: int, seconds: float, models: Path, brax_model: bool) -> float:
    """Measure steps per second of C++ lanes in which each slot plays a different network.

    Args:
        experiment: The experiment; its task, network and devices are used.
        width: Number of slots.
        seconds: Duration of the measurement.
        models: See environment().
        brax_model: Whether to play with Brax's model.
    """
    from neuroevo.envs import registry
    from neuroevo.rollout.evaluator import LocalEvaluator

    env = environment(experiment, models, brax_model)
    lanes = min(width, experiment.devices)
    with LocalEvaluator(
        registry.find(env["name"], {**env["options"], "max_episode_steps": 1000}),
        Network("mlp", hidden=experiment.hidden),
        threads=experiment.devices,
        lanes=lanes,
        slots=width // lanes,
    ) as evaluator:
        batch = evaluator.submit([Episode(Genome(seed), seed) for seed in range(_MANY)])
        evaluator.wait(batch, seconds=seconds / _PARTS)  # all slots have begun
        rates = []
        for _ in range(_PARTS):
            before, begun = evaluator.work().steps, time.perf_counter()
            evaluator.wait(batch, seconds=seconds / _PARTS)
            rates.append((evaluator.work().steps - before) / (time.perf_counter() - begun))
    return statistics.median(rates)
