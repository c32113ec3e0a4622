"""Environments of Brax for other libraries, each compiled by itself.

Libraries trace an environment's step anew in each program, and evosax takes a step outside of any. On MJX, whose step
has thousands of operations, that takes half a minute each time; a step that was compiled by itself is traced once.
"""

from __future__ import annotations

from functools import lru_cache

import jax
from brax import envs
from brax.envs.base import Wrapper

from neuroevo.accelerated.brax_simulator import shared_simulator


class CompiledEnvironment(Wrapper):  # type: ignore[misc] # Brax has no types
    """An environment whose reset and step are programs of their own wherever they are called."""

    def __init__(self, environment: envs.Env):
        super().__init__(environment)
        self.reset = jax.jit(environment.reset)
        self.step = jax.jit(environment.step)


@lru_cache(maxsize=8)
def compiled_environment(task: str, backend: str) -> envs.Env:
    """Return an environment of Brax, the same object each time.

    Args:
        task: Brax's name of it.
        backend: Its physics.
    """
    return CompiledEnvironment(shared_simulator(task, backend).environment)


@lru_cache(maxsize=8)
def registered(task: str, backend: str) -> str:
    """Register compiled_environment() with Brax, and return its name; for libraries that accept only names."""
    name = f"neuroevo:{backend}:{task}"
    envs.register_environment(name, lambda: compiled_environment(task, backend))
    return name
