"""Make the evaluator of a configuration: local, on a cluster, or on an accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuroevo.config.schema import Config, Hardware
from neuroevo.core.behavior import Behavior
from neuroevo.core.extras import require
from neuroevo.core.genome import GAUSSIAN
from neuroevo.core.problems import Problem, refuse
from neuroevo.core.user_module import current_folder, kept_modules

if TYPE_CHECKING:
    import numpy as np

    from neuroevo.accelerated.evaluator import AcceleratedEvaluator
    from neuroevo.cluster.evaluator import ClusterEvaluator
    from neuroevo.cluster.player import PlayerSettings
    from neuroevo.rollout.evaluator import LocalEvaluator

    AnyEvaluator = LocalEvaluator | ClusterEvaluator | AcceleratedEvaluator


def make_evaluator(
    config: Config, reference_batch: np.ndarray | None = None, behavior: Behavior | None = None
) -> AnyEvaluator:
    """Make the evaluator of a configuration: local, on a cluster, or on an accelerator.

    Use the evaluator as a context manager or close() it, since it holds threads, emulators and memory. With
    hardware.engine = "tensorflow" the call imports TensorFlow, which takes seconds.

    Args:
        config: The configuration; the evaluator depends on its sections [env], [network], [hardware] and [cluster], the
            algorithm's kind of mutations, and config.recorded_behavior.
        reference_batch: Observations [B, ...] from which virtual batch normalization computes its statistics:
            `RunFolder.reference_batch` or `RunReader.reference_batch()`. None for networks without it.
        behavior: Behavior to record in each episode on this machine; None: config.recorded_behavior.

    Returns:
        The evaluator. A local evaluator runs emulators on this machine's cores, and networks on the cores or the GPU.

    Raises:
        UserError: The environment or network does not exist, or an option is invalid or unsupported here.

    Example:
        >>> import neuroevo
        >>> from neuroevo.core.episode import Episode
        >>> from neuroevo.sessions.evaluators import make_evaluator
        >>> reader = neuroevo.open_run("runs/frostbite")
        >>> generation, elite = reader.elite()
        >>> episodes = [Episode(elite.genome, seed, normalizer=elite.normalizer) for seed in range(30)]
        >>> with make_evaluator(reader.config, reader.reference_batch()) as evaluator:
        ...     outcomes = evaluator.evaluate(episodes)
        >>> outcomes.returns.mean()
    """
    if config.environment.accelerated:
        return _accelerated_evaluator(config)
    if config.cluster.address != "none":
        return _cluster_evaluator(config, reference_batch)
    from neuroevo.rollout.evaluator import LocalEvaluator

    return LocalEvaluator(
        config.environment,
        config.network,
        device=config.hardware.device,
        threads=config.hardware.threads,
        lanes=config.hardware.lanes,
        slots=config.hardware.slots,
        cache_megabytes=config.hardware.cache_megabytes,
        engine=config.hardware.engine,
        behavior=behavior or config.recorded_behavior,
        kind=config.algorithm.mutation_kind,
        own_networks=config.algorithm.own_networks,
        reference_batch=reference_batch,
    )


def _accelerated_evaluator(config: Config) -> AcceleratedEvaluator:
    problems: list[Problem] = []
    if config.cluster.address != "none":
        reason = 'simulators on the accelerator do not support clusters yet, expected "none"'
        problems.append(Problem("cluster.address", reason, config.cluster.address))
    if config.algorithm.mutation_kind != GAUSSIAN:
        kind = config.algorithm.mutation_kind
        reason = f"{config.env.name} does not support mutations of kind {kind}, expected Gaussian mutations"
        problems.append(Problem("algorithm.name", reason, config.algorithm_name))
    if config.algorithm.own_networks is not None:
        reason = f"{config.env.name} does not support genomes with their own networks, expected another algorithm"
        problems.append(Problem("algorithm.name", reason, config.algorithm_name))
    for key in ("lanes", "slots", "cache_megabytes", "engine"):
        value = getattr(config.hardware, key)
        if value != getattr(Hardware(), key):
            instead = "; env.options.lanes sets the number of parallel episodes" if key == "lanes" else ""
            reason = f"applies only to the native core, not to {config.env.name}; expected the default{instead}"
            problems.append(Problem(f"hardware.{key}", reason, value))
    refuse(problems)
    from neuroevo.accelerated.start import make_evaluator

    return make_evaluator(config.environment, config.network, config.hardware.device)


def _cluster_evaluator(config: Config, reference_batch: np.ndarray | None) -> ClusterEvaluator:
    require("cluster", "ray")
    from neuroevo.cluster.evaluator import ClusterEvaluator
    from neuroevo.cluster.machines import Machines

    machines = Machines(_player_settings(config), reference_batch, config.hardware.threads, config.cluster.head_plays)
    return ClusterEvaluator(config.cluster, machines)


def _player_settings(config: Config) -> PlayerSettings:
    from neuroevo.cluster.origin import origin
    from neuroevo.cluster.player import PlayerSettings

    hardware, file = config.hardware, config.environment.file
    return PlayerSettings(
        env=config.env.name,
        env_options=config.env.options,
        file_sum=None if file is None else file.sha256(),
        network=config.network,
        device=hardware.device,
        behavior=config.recorded_behavior,
        kind=config.algorithm.mutation_kind,
        own_networks=config.algorithm.own_networks,
        lanes=hardware.lanes,
        slots=hardware.slots,
        cache_megabytes=hardware.cache_megabytes,
        engine=hardware.engine,
        origin=origin(),
        modules=kept_modules(),
        folder=current_folder(),
    )


def info_of(evaluator: AnyEvaluator) -> dict[str, Any]:
    """Return the facts about the networks and their device that a run records.

    Args:
        evaluator: The run's evaluator.
    """
    return {"parameters": evaluator.dimension, "actions": evaluator.num_actions, "device": evaluator.device}
