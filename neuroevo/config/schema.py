"""A run's configuration: sections of keys, checked once, every problem reported at once.

[env]
name = "frostbite"

[network]
name = "large_model"

[algorithm]
name = "ga"            # or evosax:NAME, or module:class of your own; the other keys are its own fields

[training]
total_steps = 250e6      # at least one of total_steps, generations and minutes

[hardware]             # may be left out
[checkpoints]          # may be left out
[cluster]              # may be left out: this machine alone
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
    """What is played."""

    name: Name
    """The environment; `neuroevo info` lists them."""
    options: dict[str, Any] = dataclass_field(default_factory=dict)
    """Options of the environment's family, as a table [env.options]."""

    @classmethod
    def of(cls, environment: Environment) -> Env:
        """Return the section of an environment that is resolved already."""
        made = cls(environment.given_name, dict(environment.given))
        object.__setattr__(made, "environment", environment)
        return made

    @cached_property
    def environment(self) -> Environment:
        """The environment that is meant, looked for once. UserError: there is none, or options are wrong."""
        return registry.find(self.name, self.options)


@settings
class Training:
    """Episodes, budgets and the seed. Steps are decisions of the network; budgets are checked between generations."""

    seed: Seed = 0
    """Everything random in the run follows from it, in [0, 2**63)."""
    episodes: Count = 1
    """Episodes per genome; its fitness is their mean return."""
    max_episode_steps: Annotated[int | str, PlainValidator(_checked_max_episode_steps)] = 5000
    """Steps after which an episode in training or validation is cut off. Or "adaptive:start,fraction,ratio,max", which
    grows, or "env_default", only the environment's own limit."""
    validation_episodes: Count = 30
    """Episodes per candidate; the best mean is the elite."""
    test_episodes: CountOrZero = 200
    """Episodes of each generation's elite without cut-off; not counted in total_steps. 0 leaves them out."""
    total_steps: Steps | None = None
    """Ends the run after this many steps of population and validation episodes."""
    generations: Count | None = None
    """Ends the run after this many generations."""
    minutes: Positive | None = None
    """Ends the run after the generation in which this wall time is over: all that it waits for counts, in all sessions
    of a resumed run together. Results then depend on the machine's speed."""
    target: Annotated[float | str | None, PlainValidator(_checked_target)] = None
    """Ends the run once an elite reaches this mean return in validation and then in its test episodes, if there are
    any. "solved" is what Gymnasium's registry demands of the task, or for a maze that the goal is reached."""
    start_from: Name | None = None
    """Another run's folder, whose best genomes this run begins with instead of fresh ones."""

    @property
    def target_return(self) -> float | None:
        """The target as a number, which make_config() has made of "solved"."""
        assert not isinstance(self.target, str), "load_config() and make_config() know what solved means"
        return self.target

    def __post_init__(self) -> None:
        if self.total_steps is None and self.generations is None and self.minutes is None:
            raise ValueError("no budget: expected at least one of total_steps, generations and minutes")


@settings
class Hardware:
    """How the machine is used. Results do not depend on it. What is left out is chosen from the machine."""

    device: Annotated[str, one_of(("auto", "cpu", "gpu"))] = "auto"
    """Where networks are evaluated; "auto" takes a GPU where there is one that this version can use."""
    threads: Threads | None = None
    """Worker threads for emulators and networks."""
    lanes: Threads | None = None
    """Lanes: groups of slots that take turns, one's networks beside another's emulators."""
    slots: Slots | None = None
    """Slots (environments) per lane."""
    cache_megabytes: Count = 600
    """Memory for the weights of parents, so that each offspring is one mutation away from a cached one."""
    engine: Annotated[str, one_of(("auto", "native", "tensorflow"))] = "auto"
    """What runs the lanes: the native core ("auto" too), or TensorFlow graphs, which start in seconds with 0.5 GB."""

    def __post_init__(self) -> None:
        lanes, slots = self.lanes or 1, self.slots or 1
        if lanes * slots > MAX_SLOTS:
            refuse([Problem("slots", f"expected at most {MAX_SLOTS // lanes} in each of {lanes} lanes", slots)])


@settings
class CheckpointSettings:
    """When checkpoints are written and how long they stay. Results do not depend on it."""

    every: Count = 1
    """Generations between checkpoints. One is also written when the run ends, is interrupted or terminated."""
    keep_last: Count = 3
    """How many of the newest stay."""
    keep_every: CountOrZero = 0
    """Every how many generations a checkpoint stays for good; 0: never."""


@settings
class Cluster:
    """The machines of a Ray cluster, which play the episodes. Results do not depend on them."""

    address: Annotated[str, cluster_address("none", "local", "auto")] = "none"
    """Where the cluster is: "auto" for the one that this machine is in, HOST:PORT of its head, or "local" for one that
    is started for the run and has this machine alone. With "none" the run plays on this machine without Ray."""
    machines: Count = 1
    """How many machines to wait for before the first episode. Others may join and leave at any time."""
    on_refusal: Annotated[str, one_of(("stop", "continue"))] = "stop"
    """What to do if `machines` have not started because some cannot play, for example with another version of
    neuroevo: "stop" ends the run with the reasons, "continue" starts with the machines that can."""
    head_plays: bool = True
    """Whether the machine with the cluster's head plays, too."""
    retries: Count = 3
    """How many machines' players may die while they play the same episode before the run ends."""
    hedge: Positive = 10.0
    """After how many seconds without an answer a machine's episodes are played on others, too."""


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
    """Where a run's metrics go beside its database. Results do not depend on it."""

    trackers: Annotated[tuple[str, ...], PlainValidator(_checked_trackers)] = ("tensorboard",)
    """Some of "tensorboard" (files in the run's folder), "wandb" and "mlflow" (extras of these names). Where the latter
    two send metrics is what their own environment variables say."""
    project: Name = "neuroevo"
    """wandb's project, MLflow's experiment."""
    members_megabytes: CountOrZero = 256
    """Limit of what genomes and behaviors of all members take in run.db, for `neuroevo inspect`. Once three quarters of
    it are used, behaviors are not stored any more, and once all of it is used, genomes neither. 0: none are stored."""


@settings
class Config:
    """A checked configuration."""

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
        """What is played: [env] as an object, which everything that asks something of the environment is handed."""
        return self.env.environment

    @property
    def recorded_behavior(self) -> Behavior | None:
        """What to record of each episode: what the algorithm asks for, or else where it ends, for the members."""
        asked: Behavior | None = self.algorithm.behavior
        kept = self.logging.members_megabytes and self.environment.measures
        return asked or (Behavior() if kept else None)

    @property
    def needs_reference(self) -> bool:
        """Return whether the network or the algorithm needs a reference batch, which the run then keeps."""
        return self.network.needs_reference or self.algorithm.needs_reference

    def on_this_machine(self) -> Config:
        """Return the configuration without a cluster, for playing after the run."""
        return replace(self, cluster=Cluster())

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the configuration as TOML tables, with every default filled in and without None."""
        tables = {name: _plain(asdict(getattr(self, name))) for name in SECTIONS}
        if self.cluster == Cluster():
            del tables["cluster"]
        if self.logging == Logging():
            del tables["logging"]
        tables["algorithm"] = {"name": self.algorithm_name, **tables["algorithm"]}
        return {name: table for name, table in tables.items() if table}

    def origin(self) -> dict[str, dict[str, Any]]:
        """Return the part of tables() that results depend on.

        It is without budgets, hardware, cluster, checkpoints, logging and options such as workers of gymnasium:
        environments, and has what a file of the environment's holds now in place of the file's path.

        Raises:
            ConfigError: That file cannot be read.
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


BUDGETS = ("total_steps", "generations", "minutes", "target")  # keys of [training] that only say when a run ends
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
    """Return a table's values for JSON: infinities, in which ranges may end, become strings."""
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in _plain(value).items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """`table` without the keys whose value is None, which TOML cannot say; they are absent."""
    return {
        key: _plain(value) if isinstance(value, Mapping) else value
        for key, value in table.items()
        if value is not None and value != {}
    }
