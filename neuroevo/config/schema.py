"""Schema of a run's configuration: sections of typed keys, whose problems are all reported at once.

[env]
name = "frostbite"

[network]
name = "large_model"

[algorithm]
name = "ga"            # or evosax:NAME, or your own module:class; the other keys are its settings

[training]
total_steps = 250e6      # at least one of total_steps, generations and minutes

[hardware]             # may be left out
[checkpoints]          # may be left out
[cluster]              # may be left out: this machine only
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from dataclasses import field as dataclass_field
from functools import cached_property
from typing import Annotated, Any

import tomli_w
from pydantic import PlainValidator

from neuroevo.config.max_episode_steps import parse_max_episode_steps
from neuroevo.core.behavior import Behavior
from neuroevo.core.bounds import MAX_SLOTS
from neuroevo.core.problems import Problem, did_you_mean, refuse
from neuroevo.core.settings import (
    Count,
    CountOrZero,
    Name,
    Positive,
    Seed,
    Slots,
    Steps,
    Threads,
    cluster_address,
    one_of,
    settings,
    whole,
)
from neuroevo.envs import registry
from neuroevo.envs.environment import Environment
from neuroevo.networks.network import Network


def _checked_max_episode_steps(value: object) -> object:
    parse_max_episode_steps(whole(value))
    return whole(value)


def _checked_target(value: object) -> object:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if value is not None and value != "solved" and not number:
        raise ValueError('expected a finite number, or "solved"')
    return value


@settings
class Env:
    """Environment settings."""

    name: Name
    """Name of the environment; `neuroevo info --games` lists them."""
    options: dict[str, Any] = dataclass_field(default_factory=dict)
    """Options of the environment's family, a table [env.options]."""

    @classmethod
    def of(cls, environment: Environment) -> Env:
        """Make the section of an environment that is already resolved."""
        made = cls(environment.given_name, dict(environment.given))
        object.__setattr__(made, "environment", environment)
        return made

    @cached_property
    def environment(self) -> Environment:
        """The environment, resolved once. UserError: it does not exist, or an option is invalid."""
        return registry.find(self.name, self.options)


@settings
class Training:
    """Training settings. Steps are decisions of the network; budgets are checked between generations."""

    seed: Seed = 0
    """Seed of all random numbers in the run, in [0, 2**63)."""
    episodes: Count = 1
    """Episodes per genome; a genome's fitness is its mean return."""
    max_episode_steps: Annotated[int | str, PlainValidator(_checked_max_episode_steps)] = 5000
    """Steps after which an episode in training or validation is truncated; "adaptive:start,fraction,ratio,max" for a
    growing limit, or "env_default" for the environment's own limit only."""
    validation_episodes: Count = 30
    """Episodes per candidate; the candidate with the highest mean return becomes the elite."""
    test_episodes: CountOrZero = 200
    """Episodes that test each generation's elite, without this limit and not counted in total_steps. 0 = no test."""
    total_steps: Steps | None = None
    """Budget: number of steps of population and validation episodes."""
    generations: Count | None = None
    """Budget: number of generations."""
    minutes: Positive | None = None
    """Budget: wall time in minutes, over all sessions of a resumed run. The run ends after the generation that exceeds
    it, so results depend on the machine's speed."""
    target: Annotated[float | str | None, PlainValidator(_checked_target)] = None
    """Mean return that ends the run once an elite reaches it in validation and then in its test episodes, if any.
    "solved" = the reward threshold in Gymnasium's registry, or for a maze, reaching the goal."""
    start_from: Name | None = None
    """Folder of another run, whose best genomes initialize this run instead of random genomes."""

    @property
    def target_return(self) -> float | None:
        """The target as a number; "solved" is already replaced by the environment's threshold."""
        assert not isinstance(self.target, str), 'load_config() and make_config() replace "solved" by a number'
        return self.target

    def __post_init__(self) -> None:
        if self.total_steps is None and self.generations is None and self.minutes is None:
            raise ValueError("no budget: expected at least one of total_steps, generations and minutes")


@settings
class Hardware:
    """Hardware settings; results do not depend on them. Defaults of unset keys depend on the machine."""

    device: Annotated[str, one_of(("auto", "cpu", "gpu"))] = "auto"
    """Device that evaluates the networks; "auto" uses a GPU if a supported one is available."""
    threads: Threads | None = None
    """Number of worker threads for emulators and networks."""
    lanes: Threads | None = None
    """Number of lanes: groups of slots, so that networks of one lane run in parallel with emulators of another."""
    slots: Slots | None = None
    """Number of slots (environments) per lane."""
    cache_megabytes: Count = 600
    """Memory in megabytes for cached weights of parents, so that making an offspring takes one mutation."""
    engine: Annotated[str, one_of(("auto", "native", "tensorflow"))] = "auto"
    """Engine of the lanes: the native core (also "auto"), or TensorFlow graphs (0.65 GB or more, start in seconds)."""

    def __post_init__(self) -> None:
        lanes, slots = self.lanes or 1, self.slots or 1
        if lanes * slots > MAX_SLOTS:
            refuse([Problem("slots", f"expected at most {MAX_SLOTS // lanes} in each of {lanes} lanes", slots)])


@settings
class CheckpointSettings:
    """Checkpoint settings; results do not depend on them."""

    every: Count = 1
    """Generations between checkpoints. A checkpoint is also written when the run finishes or is interrupted."""
    keep_last: Count = 3
    """Number of newest checkpoints to keep."""
    keep_every: CountOrZero = 0
    """Interval in generations of checkpoints that are kept permanently; 0 = none."""


@settings
class Cluster:
    """Ray cluster settings; results do not depend on them."""

    address: Annotated[str, cluster_address("none", "local", "auto")] = "none"
    """Address of the cluster: "auto" for the cluster of this machine, HOST:PORT of the head node, or "local" for a
    cluster that is started for the run on this machine only. With "none" the run uses this machine without Ray."""
    machines: Count = 1
    """Number of machines to wait for before the first episode. Machines may join and leave at any time."""
    on_refusal: Annotated[str, one_of(("stop", "continue"))] = "stop"
    """Action if fewer than `machines` start because some are rejected, for example for another version of neuroevo:
    "stop" ends the run with the reasons, "continue" starts with the accepted machines."""
    head_plays: bool = True
    """Whether the head node also evaluates episodes."""
    retries: Count = 3
    """Number of player crashes on one episode after which the run ends."""
    hedge: Positive = 10.0
    """Seconds without a response after which a machine's episodes are also dispatched to other machines."""


TRACKERS = ("tensorboard", "wandb", "mlflow")


def _checked_trackers(value: object) -> tuple[str, ...]:
    names = value if isinstance(value, (list, tuple)) else ()
    wrong = [name for name in names if name not in TRACKERS]
    if wrong or len(set(names)) < len(names) or not isinstance(value, (list, tuple)):
        hint = did_you_mean(wrong[0], TRACKERS) if wrong and isinstance(wrong[0], str) else ""
        raise ValueError(f"expected a list of some of {', '.join(TRACKERS)}{hint}")
    return tuple(names)


@settings
class Logging:
    """Logging settings; results do not depend on them."""

    trackers: Annotated[tuple[str, ...], PlainValidator(_checked_trackers)] = ("tensorboard",)
    """Trackers that receive the metrics: any of "tensorboard" (files in the run's folder), "wandb" and "mlflow" (extras
    of the same names, configured by their own environment variables)."""
    project: Name = "neuroevo"
    """Name of the wandb project or the MLflow experiment."""
    members_megabytes: CountOrZero = 256
    """Maximum size in megabytes of all members' genomes and behaviors in run.db, for `neuroevo inspect`. Behaviors are
    no longer stored once three quarters of it are used, genomes once all of it is used. 0 = store none."""


@settings
class Config:
    """Valid configuration of a run."""

    env: Env
    network: Network
    algorithm: Any
    training: Training
    hardware: Hardware
    checkpoints: CheckpointSettings
    cluster: Cluster
    logging: Logging
    algorithm_name: str

    @property
    def environment(self) -> Environment:
        """The environment that [env] describes."""
        return self.env.environment

    @property
    def recorded_behavior(self) -> Behavior | None:
        """The behavior to record in each episode: the algorithm's, or else the final one, to store with the members."""
        asked: Behavior | None = self.algorithm.behavior
        kept = self.logging.members_megabytes and self.environment.measures
        return asked or (Behavior() if kept else None)

    @property
    def needs_reference(self) -> bool:
        """Whether the network or the algorithm needs a reference batch."""
        return self.network.needs_reference or self.algorithm.needs_reference

    def on_this_machine(self) -> Config:
        """Return the configuration without a cluster, for evaluation after the run."""
        return replace(self, cluster=Cluster())

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the configuration as TOML tables, with all defaults filled in and without None."""
        tables = {name: _plain(asdict(getattr(self, name))) for name in SECTIONS}
        if self.cluster == Cluster():
            del tables["cluster"]
        if self.logging == Logging():
            del tables["logging"]
        tables["algorithm"] = {"name": self.algorithm_name, **tables["algorithm"]}
        return {name: table for name, table in tables.items() if table}

    def origin(self) -> dict[str, dict[str, Any]]:
        """Return the part of tables() that results depend on.

        The tables exclude budgets, hardware, cluster, checkpoints, logging and options such as workers of gymnasium:
        environments. The path of an environment's file is replaced by the file's current content.

        Raises:
            ConfigError: The environment's file cannot be read.
        """
        tables = self.tables()
        training = {key: value for key, value in tables["training"].items() if key not in BUDGETS}
        return {
            "env": _as_json({**tables["env"], **self.environment.result_options()}),
            "network": tables["network"],
            "algorithm": tables["algorithm"],
            "training": training,
        }

    def toml(self) -> str:
        """Return the configuration as TOML text that loads as the same configuration."""
        return tomli_w.dumps(self.tables())


BUDGETS = ("total_steps", "generations", "minutes", "target")  # keys of [training] that only determine when a run ends
SECTIONS = {
    "env": Env,
    "network": Network,
    "algorithm": None,
    "training": Training,
    "hardware": Hardware,
    "checkpoints": CheckpointSettings,
    "cluster": Cluster,
    "logging": Logging,
}


def _as_json(value: Any) -> Any:
    """Convert a table's values for JSON: infinite bounds of ranges become strings."""
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in _plain(value).items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return `table` without None, which TOML cannot represent, and without empty tables."""
    return {
        key: _plain(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None and value != {}
    }
