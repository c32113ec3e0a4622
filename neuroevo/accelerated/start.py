"""Starts JAX as an environment asks for it, and makes the evaluator."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from neuroevo.accelerated.evaluator import AcceleratedEvaluator
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem
from neuroevo.envs.brax import BraxOptions
from neuroevo.envs.environment import Environment
from neuroevo.networks.architectures import Network, check

if TYPE_CHECKING:
    from neuroevo.accelerated.brax_simulator import BraxSimulator

_CACHE = "JAX_COMPILATION_CACHE_DIR"


def make_evaluator(env: Environment, network: Network, steps: int = 64) -> AcceleratedEvaluator:
    """Makes the evaluator of an environment whose simulator runs on the accelerator.

    Programs are compiled when the first episodes are played, which takes up to a minute. What was compiled is kept
    between runs, in the folder that JAX_COMPILATION_CACHE_DIR names or ~/.cache/neuroevo/jax.

    Args:
        env: The environment.
        network: Who plays.
        steps: Between looks at signals and progress.

    Raises:
        UserError: There is no such environment or device.
        ConfigError: The network cannot play it.
    """
    for problem in check(network, env.given_name, env.image_observations, env.continuous_actions):
        raise ConfigError([problem])
    options = BraxOptions(**env.values)
    start_jax(options.devices)
    return AcceleratedEvaluator(
        make_simulator(env, options),
        network,
        max_episode_steps=options.max_episode_steps,
        lanes=options.lanes,
        devices=options.devices,
        steps=steps,
    )


def start_jax(devices: int) -> None:
    """Sets JAX up, before it has been used in this process.

    Args:
        devices: How many there should be where the processor is all there is.
    """
    if _CACHE not in os.environ:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "neuroevo" / "jax"
        _set("jax_compilation_cache_dir", str(folder))
    _set("jax_persistent_cache_min_compile_time_secs", 0.5)
    # Where JAX has been used already, its devices are what they are; the evaluator says so if they are too few.
    with contextlib.suppress(RuntimeError):
        _set("jax_num_cpu_devices", devices)


def make_simulator(env: Environment, options: BraxOptions) -> BraxSimulator:
    """Makes Brax's environment, or returns the one that was made before.

    Args:
        env: The environment.
        options: Its options.

    Raises:
        UserError: A module cannot be imported.
        ConfigError: It registers no such environment.
    """
    module, _, task = env.name.removeprefix("brax:").rpartition(":")
    if module:
        _import(module, env.given_name)
    try:
        return shared_simulator(task, options.backend)
    except KeyError:
        reason = f"{module or 'Brax'} registers no environment '{task}'"
        raise ConfigError([Problem("env.name", reason, env.given_name)]) from None


def brax_environment(env: Environment) -> Any:
    """Brax's own object of an environment; raises what make_simulator() does."""
    return make_simulator(env, BraxOptions(**env.values)).environment


@lru_cache(maxsize=4)
def shared_simulator(task: str, backend: str) -> BraxSimulator:
    """Brax's environment, the same object whenever it is asked for, of which JAX finds again what it has compiled.

    Args:
        task: Brax's name of it.
        backend: Its physics.

    Raises:
        KeyError: Brax has none of that name.
    """
    with contextlib.redirect_stdout(io.StringIO()):  # MJX prints which optional packages it does not find
        from neuroevo.accelerated.brax_simulator import BraxSimulator
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Brax is no longer developed, as docs/brax.md says
        return BraxSimulator(task, backend)


def _import(module: str, name: str) -> None:
    import importlib

    try:
        importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"cannot import the module '{module}' of {name!r}: {error}") from error


def _set(key: str, value: object) -> None:
    jax.config.update(key, value)  # type: ignore[no-untyped-call]
