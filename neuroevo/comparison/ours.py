"""neuroevo's side of a comparison: the same evolution strategy as a training run, and the rate of its C++ lanes."""

from __future__ import annotations

import importlib.util
import statistics
import time
from pathlib import Path
from typing import Any

import mujoco

from neuroevo.accelerated.peers.experiment import Experiment, Generation, Report
from neuroevo.analysis.run import train
from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.envs.brax import COUNTERPARTS
from neuroevo.networks.network import Network
from neuroevo.system.files import write_atomically
from neuroevo.training.callback import Callback
from neuroevo.training.record import Record

_MANY = 200_000  # episodes: more than end while a rate is measured
_PARTS = 3  # measured one after another; the middle one counts


def evolve(contender: str, experiment: Experiment, folder: Path, report: Report) -> None:
    """Trains a run.

    Args:
        contender: "native", "same_model" or "accelerated".
        experiment: What is evolved.
        folder: The run's, which must not be there.
        report: Called after each generation.
    """
    compile_seconds = _nothing
    if contender == "accelerated":
        from neuroevo.accelerated.brax_simulator import BraxSimulator  # noqa: F401 - importing is not training
        from neuroevo.accelerated.compile_clock import CompileClock

        compile_seconds = CompileClock().seconds
    begun = time.perf_counter()
    steps = test_steps = 0
    clock = _Clock()

    def tell(record: Record) -> None:
        nonlocal steps, test_steps
        steps += record.population.steps
        test_steps += record.test.steps
        # A record comes once the test is over, which may be generations later; the center was there earlier.
        last = record.generation + 1 == experiment.generations
        ended = time.perf_counter() if last else clock.began + record.seconds_total
        seconds, mean = ended - begun, record.test.mean
        assert mean is not None  # there are test episodes
        report(Generation(record.generation + 1, mean, steps, test_steps, seconds, compile_seconds(ended)))

    train(
        configuration(contender, experiment, folder.parent),
        out=folder,
        command=["neuroevo", "compare"],
        callbacks=[clock, tell],
    )


class _Clock(Callback):
    """Notes when the first generation begins."""

    began: float

    def phase(self, generation: int, name: str, episodes: int) -> None:  # noqa: ARG002
        if not hasattr(self, "began"):
            self.began = time.perf_counter()


def configuration(contender: str, experiment: Experiment, models: Path) -> dict[str, Any]:
    """The run's configuration as tables; see environment()."""
    return {
        "env": environment(contender, experiment, models),
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


def environment(contender: str, experiment: Experiment, models: Path) -> dict[str, Any]:
    """The section [env] of a contender.

    Args:
        contender: "native", "same_model" or "accelerated".
        experiment: What is evolved.
        models: Where a changed copy of Brax's model may be written.
    """
    options: dict[str, Any] = {"max_episode_steps": experiment.episode_length}
    if contender == "accelerated":
        lanes = lanes_of(experiment)
        options |= {"backend": experiment.backend, "devices": experiment.devices, "lanes": lanes}
        return {"name": f"brax:{experiment.task}", "options": options}
    same = COUNTERPARTS[experiment.task]
    if contender == "same_model":
        options["xml_file"] = str(_playable(brax_asset(same.model), models))
    return {"name": same.name, "options": options}


def lanes_of(experiment: Experiment) -> int:
    """How many lanes the accelerated evaluator gets: as many as are asked for, and a multiple of the devices."""
    devices = experiment.devices
    return max(2, -(-(experiment.lanes or experiment.population) // devices)) * devices


def brax_asset(file: str) -> Path:
    """Where Brax keeps a model. UserError: there is no Brax."""
    brax = importlib.util.find_spec("brax")
    folders = brax.submodule_search_locations if brax is not None else None
    if not folders:
        raise UserError("Brax's models come with Brax, which is not installed")
    return Path(folders[0], "envs", "assets", file)


def _playable(model: Path, models: Path) -> Path:
    """A model of Brax as Gymnasium's task needs it: where `rootz` slides, its position must be the body's height.

    In Brax's files of Hopper and Walker2d it is 0 at the start, and Brax's environments look the height up elsewhere.
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


def lane_rate(contender: str, experiment: Experiment, width: int, seconds: float, models: Path) -> float:
    """Steps per second of C++ lanes, where each slot plays a network of its own.

    Args:
        contender: "native" or "same_model".
        experiment: Its task, network and devices count.
        width: Slots.
        seconds: How long to measure.
        models: See environment().
    """
    from neuroevo.envs import registry
    from neuroevo.rollout.evaluator import LocalEvaluator

    env = environment(contender, experiment, models)
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


def _nothing(until: float) -> float:  # noqa: ARG001
    return 0.0
