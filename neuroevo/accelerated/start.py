"""Start JAX as an environment requires it, and make the evaluator."""

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

    Programs are compiled when the first episodes are played, which takes up to a minute. What was compiled is kept
    between runs, in the folder that JAX_COMPILATION_CACHE_DIR names or ~/.cache/neuroevo/jax.

    Args:
        env: The environment.
        network: The network that plays.
        device: "auto" for JAX's choice, "cpu" or "gpu".
        steps: Steps between checks of signals and progress.

    Raises:
        UserError: There is no such environment or device, or a model cannot be simulated.
        ConfigError: The network cannot play it, or the model lacks what options name.
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
    """Set JAX up, before it has been used in this process.

    Args:
        devices: Number of devices on a machine that has only its processor.
        device: "auto" for JAX's choice, "cpu" or "gpu".

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
    """Make an environment's simulator, or return the one that was made before.

    Args:
        env: The environment.

    Raises:
        UserError: A module cannot be imported, or a model not simulated.
        ConfigError: The module registers no such environment, or the model lacks what options name.
    """
    with quiet():
        module = importlib.import_module(env.simulator)
    simulator: BraxSimulator = module.make_simulator(env)
    return simulator


def _set(key: str, value: object) -> None:
    jax.config.update(key, value)  # type: ignore[no-untyped-call]
