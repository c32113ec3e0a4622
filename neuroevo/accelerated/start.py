"""Starts JAX as an environment asks for it, and makes the evaluator."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import subprocess
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from neuroevo.accelerated.evaluator import AcceleratedEvaluator
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean
from neuroevo.envs.brax import PREFIX
from neuroevo.envs.environment import Environment
from neuroevo.envs.mjx import MjxOptions
from neuroevo.envs.playground import PREFIX as PLAYGROUND
from neuroevo.networks.network import Network, check

if TYPE_CHECKING:
    from neuroevo.accelerated.brax_simulator import BraxSimulator

_CACHE = "JAX_COMPILATION_CACHE_DIR"


def make_evaluator(env: Environment, network: Network, device: str = "auto", steps: int = 64) -> AcceleratedEvaluator:
    """Makes the evaluator of an environment whose simulator runs on the accelerator.

    Programs are compiled when the first episodes are played, which takes up to a minute. What was compiled is kept
    between runs, in the folder that JAX_COMPILATION_CACHE_DIR names or ~/.cache/neuroevo/jax.

    Args:
        env: The environment.
        network: Who plays.
        device: "auto" for what JAX takes, "cpu" or "gpu".
        steps: Between looks at signals and progress.

    Raises:
        UserError: There is no such environment or device, or a model cannot be simulated.
        ConfigError: The network cannot play it, or the model lacks what options name.
    """
    for problem in check(network, env.given_name, env.image_observations, env.continuous_actions):
        raise ConfigError([problem])
    options = env.options_type(**env.values)
    start_jax(options.devices, device)
    return AcceleratedEvaluator(
        make_simulator(env),
        network,
        max_episode_steps=options.max_episode_steps,
        lanes=options.lanes,
        devices=options.devices,
        steps=steps,
    )


def start_jax(devices: int, device: str = "auto") -> None:
    """Sets JAX up, before it has been used in this process.

    Args:
        devices: How many there should be where the processor is all there is.
        device: "auto" for what JAX takes, "cpu" or "gpu".

    Raises:
        ConfigError: JAX has no such device, or has begun with another in this process.
    """
    if _CACHE not in os.environ:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "neuroevo" / "jax"
        _set("jax_compilation_cache_dir", str(folder))
    _set("jax_persistent_cache_min_compile_time_secs", 0.5)
    # Where JAX has been used already, its devices are what they are; the evaluator says so if they are too few.
    with contextlib.suppress(RuntimeError):
        _set("jax_num_cpu_devices", devices)
    if device == "auto":
        return
    if device == "cpu":
        _set("jax_platforms", "cpu")  # without effect where another has been used
    there = jax.default_backend()
    if there != device:
        raise ConfigError([Problem("hardware.device", f"JAX computes on {there} here, expected that or auto", device)])


def make_simulator(env: Environment) -> BraxSimulator:
    """Makes an environment's simulator, or returns the one that was made before.

    Args:
        env: The environment.

    Raises:
        UserError: A module cannot be imported, or a model not simulated.
        ConfigError: The module registers no such environment, or the model lacks what options name.
    """
    options = env.options_type(**env.values)
    if isinstance(options, MjxOptions):
        if env.file is None:
            return _mjx_simulator(options, "")
        absolute = env.options_type(**{**env.values, env.file.option: str(env.file.path)})
        return _mjx_simulator(absolute, env.file.sha256())
    if env.name.startswith(PLAYGROUND):
        return _playground_simulator(env.name.removeprefix(PLAYGROUND), env.given_name)
    module, _, task = env.name.removeprefix(PREFIX).rpartition(":")
    if module:
        _import(module, env.given_name)
    try:
        return shared_simulator(task, options.backend)
    except KeyError:
        reason = f"{module or 'Brax'} registers no environment '{task}'"
        raise ConfigError([Problem("env.name", reason, env.given_name)]) from None


def brax_environment(env: Environment) -> Any:
    """Brax's own object of an environment; raises what make_simulator() does."""
    return make_simulator(env).environment


@lru_cache(maxsize=4)
def shared_simulator(task: str, backend: str) -> BraxSimulator:
    """Brax's environment, the same object whenever it is asked for, of which JAX finds again what it has compiled.

    Args:
        task: Brax's name of it.
        backend: Its physics.

    Raises:
        KeyError: Brax has none of that name.
    """
    with _quiet():
        from brax import envs

        from neuroevo.accelerated.brax_simulator import BraxSimulator

        return BraxSimulator(envs.get_environment(task, backend=backend))


@lru_cache(maxsize=4)
def _mjx_simulator(options: MjxOptions, sha256: str) -> BraxSimulator:  # noqa: ARG001 - a changed file is another
    with _quiet():
        from neuroevo.accelerated.brax_simulator import BraxSimulator
        from neuroevo.accelerated.mjx_task import MjxTask

        return BraxSimulator(MjxTask(options))


@lru_cache(maxsize=4)
def _playground_simulator(task: str, given_name: str) -> BraxSimulator:
    with _quiet():
        from mujoco_playground import registry

        from neuroevo.accelerated.playground_simulator import PlaygroundSimulator

        if task not in registry.ALL_ENVS:
            known = ", ".join(registry.ALL_ENVS)
            reason = f"MuJoCo Playground has no task '{task}'{did_you_mean(task, registry.ALL_ENVS)} (it has {known})"
            raise ConfigError([Problem("env.name", reason, given_name)])
        try:
            return PlaygroundSimulator(registry.load(task, config_overrides={"impl": "jax"}))
        except (OSError, ValueError, NotImplementedError, RuntimeError, subprocess.SubprocessError) as error:
            raise UserError(f"Playground cannot make its task {task}: {error}") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what MJX prints of optional packages, and the warning that Brax is no longer developed (docs/brax.md)."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _import(module: str, name: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"cannot import the module '{module}' of {name!r}: {error}") from error


def _set(key: str, value: object) -> None:
    jax.config.update(key, value)  # type: ignore[no-untyped-call]
