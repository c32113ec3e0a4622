"""Brax environments with separately compiled reset and step, for other libraries.

Libraries retrace an environment's step in each program, and evosax takes a step outside of any program. On MJX, whose
step has thousands of operations, tracing takes half a minute each time; a step with its own jit is traced once.
"""

from __future__ import annotations

from functools import lru_cache

import jax
from brax import envs
from brax.envs.base import Wrapper

from neuroevo.accelerated.brax_simulator import shared_simulator


class CompiledEnvironment(Wrapper):  # type: ignore[misc] # Brax has no types
    """Environment whose reset and step are always called as separately compiled programs."""

    def __init__(self, environment: envs.Env):
        super().__init__(environment)
        self.reset = jax.jit(environment.reset)
        self.step = jax.jit(environment.step)


@lru_cache(maxsize=8)
def compiled_environment(task: str, backend: str) -> envs.Env:
    """Return a Brax environment; the object is cached.

    Args:
        task: Brax's name of the environment.
        backend: Brax's name of the physics engine.
    """
    return CompiledEnvironment(shared_simulator(task, backend).environment)


@lru_cache(maxsize=8)
def registered(task: str, backend: str) -> str:
    """Register compiled_environment() with Brax and return its name, for libraries that accept only names."""
    name = f"neuroevo:{backend}:{task}"
    envs.register_environment(name, lambda: compiled_environment(task, backend))
    return name
