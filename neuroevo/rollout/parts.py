"""Make the environments of an evaluator, and check that they, the networks and the reference batch fit each other."""

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
    """Check networks before their environment is made.

    Args:
        networks: The networks.
        env: The environment.
        kind: Of the mutations.

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
    """Make environments that the networks can play.

    Args:
        engine: Makes them.
        env: Specification of the environments.
        slots: Number of environments.
        networks: The networks.
        behavior: What to record of each episode; None: nothing.

    Raises:
        UserError: There is no such mode of the environment, it has no behavior, or a network cannot play it.
    """
    pool = done(env.name, lambda: engine.env_pool(env, slots))
    if behavior is not None:
        every, samples = behavior.every, behavior.samples
        done(f"behaviors of {env.name}", lambda: pool.record_behaviors(every, samples), "recorded")
    shape, pixels = pool.observation_shape, pool.observation_dtype == np.uint8
    images = None if len(shape) == 3 and not pixels else pixels  # images of floats are for any network
    for problem in (problem for each in networks for problem in check(each, env.name, images, shape=shape)):
        raise ConfigError([problem])
    for bins in {network.action_bins for network in networks if pool.action_dtype == np.float32}:
        # Bins need bounds, which an action may not have.
        none = np.zeros((0, pool.num_actions * (bins or 1)), np.float32)
        done("the networks' actions", functools.partial(pool.actions, none))
    return pool


def check_reference(batch: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Check a reference batch.

    Args:
        batch: Observations [B, ...].
        dtype: Of the observations that networks see.
        shape: Of one of them.

    Raises:
        UserError: It has another dtype or shape, or is empty.
    """
    if batch.dtype != dtype or batch.shape[1:] != shape or not len(batch):
        raise UserError(
            f"the reference batch has dtype {batch.dtype} and shape {list(batch.shape)}, "
            f"expected {dtype} and {['B', *shape]} as the environment's observations have"
        )


def done(what: str, do: Callable[[], _Made], done: str = "made") -> _Made:
    """Call a function of the native core.

    Args:
        what: What it makes, for the error.
        do: The function.
        done: Participle of what cannot be done, likewise.

    Raises:
        UserError: An argument is invalid; the message contains the core's reason.
    """
    try:
        return do()
    except NativeArgumentError as error:
        raise UserError(f"{what} cannot be {done}: {error}") from None
