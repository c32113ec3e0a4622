"""Initialization of JAX and of the evaluator for environments on the accelerator."""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from neuroevo.accelerated.evaluator import AcceleratedEvaluator
from neuroevo.accelerated.simulator import quiet
from neuroevo.core.problems import ConfigError, Problem
from neuroevo.envs.environment import Environment
from neuroevo.networks.network import Network, check

if TYPE_CHECKING:
    from neuroevo.accelerated.brax_simulator import BraxSimulator

_CACHE = "JAX_COMPILATION_CACHE_DIR"


def make_evaluator(env: Environment, network: Network, device: str = "auto", steps: int = 64) -> AcceleratedEvaluator:
    """Make the evaluator of an environment whose simulator runs on the accelerator.

    Programs are compiled when the first episodes are played, which takes up to a minute. Compiled programs are cached
    in the folder JAX_COMPILATION_CACHE_DIR, by default ~/.cache/neuroevo/jax.

    Args:
        env: The environment.
        network: The network that plays.
        device: "auto" for JAX's choice, "cpu" or "gpu".
        steps: Steps between checks of signals and progress.

    Raises:
        UserError: The environment or device does not exist, or a model cannot be simulated.
        ConfigError: The network does not fit the environment, or the model lacks a part that the options name.
    """
    for problem in check(network, env.given_name, env.image_observations, env.continuous_actions):
        raise ConfigError([problem])
    options = env.options
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
    """Configure JAX before its first use in this process.

    Args:
        devices: Number of CPU devices to create on a machine without an accelerator.
        device: "auto" for JAX's choice, "cpu" or "gpu".

    Raises:
        ConfigError: JAX does not have the device, or already uses another one in this process.
    """
    if _CACHE not in os.environ:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "neuroevo" / "jax"
        _set("jax_compilation_cache_dir", str(folder))
    _set("jax_persistent_cache_min_compile_time_secs", 0.5)
    # If JAX has been initialized, its devices can no longer change; the evaluator raises if they are too few.
    with contextlib.suppress(RuntimeError):
        _set("jax_num_cpu_devices", devices)
    if device == "auto":
        return
    if device == "cpu":
        _set("jax_platforms", "cpu")  # no effect once JAX has been initialized
    there = jax.default_backend()
    if there != device:
        raise ConfigError([Problem("hardware.device", f"JAX uses {there} here, expected {there} or auto", device)])


def make_simulator(env: Environment) -> BraxSimulator:
    """Make an environment's simulator, or return the cached one.

    Args:
        env: The environment.

    Raises:
        UserError: A module cannot be imported, or a model cannot be simulated.
        ConfigError: The module registers no such environment, or the model lacks a part that the options name.
    """
    with quiet():
        module = importlib.import_module(env.simulator)
    simulator: BraxSimulator = module.make_simulator(env)
    return simulator


def _set(key: str, value: object) -> None:
    jax.config.update(key, value)  # type: ignore[no-untyped-call]
