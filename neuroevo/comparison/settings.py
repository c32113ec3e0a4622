"""A comparison: tasks x contenders x seeds. What its file says, and which jobs that is.

[compare]
contenders = ["native", "same_model", "accelerated", "brax", "evosax"]
seeds = 3
population = 64
tasks = [{ name = "hopper", episode_length = 500, generations = 20 }]
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from neuroevo.accelerated.peers.experiment import Experiment
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.settings import Count, Name, Positive, nested_settings, one_of, settings, whole
from neuroevo.sweeps.section import folder_of, read_section
from neuroevo.sweeps.settings import checked_seeds
from neuroevo.system.processes import usable_cores

CONTENDERS = {
    "native": "neuroevo, C++ lanes, Gymnasium's model",
    "same_model": "neuroevo, C++ lanes, Brax's model",
    "accelerated": "neuroevo on Brax",
    "brax": "Brax's own ES",
    "evosax": "evosax on Brax",
}
"""Who takes part, and what they are called in tables."""
TASKS = ("ant", "halfcheetah", "hopper", "humanoid", "inverted_pendulum", "reacher")
"""Brax's names of what can be played."""


def _different(what: str) -> Callable[[list[Any]], list[Any]]:
    def check(values: list[Any]) -> list[Any]:
        names = [getattr(value, "name", value) for value in values]
        if len(set(names)) < len(names):
            raise ValueError(f"expected different {what}")
        return values

    return check


@nested_settings
class TaskSettings:
    """An entry of tasks."""

    name: Annotated[str, one_of(TASKS)]
    """Brax's name of the task."""
    episode_length: Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**6)] = 1000
    """Steps after which an episode is cut off."""
    generations: Count = 20
    """How many."""


@settings
class CompareSettings:
    """The keys of [compare]."""

    tasks: Annotated[list[TaskSettings], Field(min_length=1), AfterValidator(_different("tasks"))]
    """What is played."""
    contenders: Annotated[
        list[Annotated[str, one_of(CONTENDERS)]], Field(min_length=1), AfterValidator(_different("contenders"))
    ] = dataclass_field(default_factory=lambda: list(CONTENDERS))
    """Who takes part; by default all."""
    backend: Literal["mjx", "generalized", "spring", "positional"] = "mjx"
    """Brax's physics."""
    seeds: Annotated[list[int], PlainValidator(checked_seeds)] = dataclass_field(default_factory=lambda: [0])
    """How many, from 0 on, or a list of them."""
    population: Annotated[Count, Field(multiple_of=2)] = 64
    """Genomes per generation, each of which plays one episode."""
    sigma: Positive = 0.05
    """Standard deviation of the noise."""
    learning_rate: Positive = 0.05
    """Adam's."""
    hidden: Annotated[list[Count], Field(min_length=1)] = dataclass_field(default_factory=lambda: [32, 32])
    """Units of the network's hidden layers."""
    normalize_observations: bool = False
    """Whether observations lose their mean and are divided by their deviation; each library does that in its way."""
    test_episodes: Count = 16
    """Episodes of the center after each generation."""
    devices: Count | None = None
    """How many devices, or cores, everybody uses; left out: all cores."""
    lanes: Count | None = None
    """How many episodes neuroevo's evaluator on Brax plays side by side; left out: as many as there are genomes. With
    fewer, lanes are refilled as episodes end; the other libraries cannot do that."""
    throughput: list[Annotated[int, BeforeValidator(whole), Field(ge=1, le=1 << 20)]] = dataclass_field(
        default_factory=list
    )
    """Batch sizes at which to measure steps per second without evolution; none by default."""
    throughput_seconds: Positive = 3.0
    """How long to measure each."""
    out: Name | None = None
    """The folder of results; left out: runs/NAME, after the file."""


@dataclass(frozen=True)
class Job:
    """What is done and measured by itself.

    Attributes:
        kind: "evolve", "throughput" or "differences".
        contender: One of CONTENDERS; in throughput also "bare": Brax's step alone.
        experiment: What is evolved; in the others its task, backend, network and devices count.
        widths: Batch sizes of a throughput.
        seconds: How long to measure each.
    """

    kind: str
    contender: str
    experiment: Experiment
    widths: tuple[int, ...] = ()
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """What it is called, also the name of its files."""
        seed = f"-seed-{self.experiment.seed}" if self.kind == "evolve" else ""
        return f"{self.kind}-{self.experiment.task}-{self.contender}{seed}"

    @property
    def group(self) -> tuple[str, str]:
        """Jobs of the same group may be done by the same process."""
        return self.experiment.task, self.contender

    def table(self) -> dict[str, Any]:
        """The job as values that JSON has."""
        return json.loads(json.dumps(asdict(self)))  # tuples become lists, as they will be when they are read again

    @staticmethod
    def of(table: dict[str, Any]) -> Job:
        """The job that table() described."""
        experiment = {**table["experiment"], "hidden": tuple(table["experiment"]["hidden"])}
        return Job(**{**table, "experiment": Experiment(**experiment), "widths": tuple(table["widths"])})


@dataclass(frozen=True)
class Comparison:
    """Everything that is done.

    Attributes:
        settings: What the file says.
        devices: How many everybody uses.
        jobs: In order; contenders take turns.
        out: The folder of results.
    """

    settings: CompareSettings
    devices: int
    jobs: list[Job]
    out: Path


def load_comparison(path: Path | str, out: Path | None = None) -> Comparison:
    """The comparison in a TOML file.

    Args:
        path: The file.
        out: The folder of results, instead of the file's own.

    Raises:
        ConfigError: The file has problems; all of them.
        UserError: There is no such file, or it cannot be read.
    """
    path = Path(path)
    chosen = read_section(path, "compare", CompareSettings)
    devices = chosen.devices or usable_cores()
    jobs: list[Job] = []
    for task in chosen.tasks:
        each = {seed: _experiment(chosen, task, seed, devices) for seed in chosen.seeds}
        first = each[chosen.seeds[0]]
        jobs.append(Job("differences", "brax", first))
        jobs += [Job("evolve", contender, each[seed]) for seed in chosen.seeds for contender in chosen.contenders]
        if chosen.throughput:
            measured = [name for name in ("native", "same_model", "accelerated") if name in chosen.contenders]
            same = (first, tuple(chosen.throughput), chosen.throughput_seconds)
            jobs += [Job("throughput", contender, *same) for contender in [*measured, "bare"]]
    return Comparison(chosen, devices, jobs, folder_of(path, chosen.out, out))


def require_packages(chosen: CompareSettings) -> None:
    """Whether all that the contenders need is installed. ConfigError: something is not."""
    missing = [name for name in ("brax", "evosax") if importlib.util.find_spec(name) is None]
    needed = [name for name in missing if name == "brax" or name in chosen.contenders]
    reason = "not installed; `pip install neuroevo[compare]` installs what comparisons need"
    refuse([Problem("compare.contenders", f"{name} is {reason}") for name in needed])


def _experiment(chosen: CompareSettings, task: TaskSettings, seed: int, devices: int) -> Experiment:
    return Experiment(
        task=task.name,
        backend=chosen.backend,
        seed=seed,
        population=chosen.population,
        sigma=chosen.sigma,
        learning_rate=chosen.learning_rate,
        hidden=tuple(chosen.hidden),
        normalize_observations=chosen.normalize_observations,
        episode_length=task.episode_length,
        generations=task.generations,
        test_episodes=chosen.test_episodes,
        devices=devices,
        lanes=chosen.lanes,
    )
