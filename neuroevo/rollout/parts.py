"""Creation of an evaluator's environments, and compatibility checks of environments, networks and reference batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeArgumentError, UserError
from neuroevo.core.genome import Kind
from neuroevo.core.problems import ConfigError
from neuroevo.envs.environment import Environment
from neuroevo.networks.network import Network, check
from neuroevo.rollout.engine import Engine, EnginePool

_Made = TypeVar("_Made")


def check_networks(networks: Sequence[Network], env: Environment, kind: Kind) -> str:
    """Check networks before their environment is created.

    Args:
        networks: The networks.
        env: The environment.
        kind: Kind of the mutations.

    Returns:
        The dtype in which the networks are evaluated, "float32" or "int8".

    Raises:
        UserError: A network cannot play the environment, or they are evaluated in different dtypes.
    """
    for network in networks:
        for problem in check(network, env.given_name, env.image_observations, env.continuous_actions):
            raise ConfigError([problem])
    dtypes = {network.dtype for network in networks}
    if len(dtypes) > 1:
        raise UserError(f"networks are evaluated in {' and '.join(sorted(dtypes))}, expected one of these for all")
    (dtype,) = dtypes
    if not kind.materialized and dtype != "float32":
        raise UserError(f"networks are evaluated in {dtype}, expected float32 for mutations of {kind}")
    return dtype


def make_pool(
    engine: Engine, env: EnvSpec, slots: int, networks: Sequence[Network], behavior: Behavior | None
) -> EnginePool:
    """Create environments and check that the networks can play them.

    Args:
        engine: Engine that creates the environments.
        env: Specification of the environments.
        slots: Number of environments.
        networks: The networks.
        behavior: Behavior to record of each episode; None to record nothing.

    Raises:
        UserError: A mode of the environment does not exist, it has no behavior, or a network cannot play it.
    """
    pool = done(env.name, lambda: engine.env_pool(env, slots))
    if behavior is not None:
        every, samples = behavior.every, behavior.samples
        done(f"behaviors of {env.name}", lambda: pool.record_behaviors(every, samples), "recorded")
    shape, pixels = pool.observation_shape, pool.observation_dtype == np.uint8
    images = None if len(shape) == 3 and not pixels else pixels  # any network may get images of floats
    for problem in (problem for each in networks for problem in check(each, env.name, images, shape=shape)):
        raise ConfigError([problem])
    for bins in {network.action_bins for network in networks if pool.action_dtype == np.float32}:
        # Bins need bounded actions.
        none = np.zeros((0, pool.num_actions * (bins or 1)), np.float32)
        done("the networks' actions", functools.partial(pool.actions, none))
    return pool


def check_reference(batch: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Check a reference batch.

    Args:
        batch: Observations [B, ...].
        dtype: Dtype of the networks' observations.
        shape: Shape of one observation.

    Raises:
        UserError: The batch has another dtype or shape, or is empty.
    """
    if batch.dtype != dtype or batch.shape[1:] != shape or not len(batch):
        raise UserError(
            f"the reference batch has dtype {batch.dtype} and shape {list(batch.shape)}, "
            f"expected {dtype} and {['B', *shape]} as the environment's observations have"
        )


def done(what: str, do: Callable[[], _Made], done: str = "made") -> _Made:
    """Call a function of the native core.

    Args:
        what: Noun for the error message, such as "the population".
        do: The function.
        done: Participle for the error message, such as "made".

    Raises:
        UserError: An argument is invalid; the message contains the core's reason.
    """
    try:
        return do()
    except NativeArgumentError as error:
        raise UserError(f"{what} cannot be {done}: {error}") from None
