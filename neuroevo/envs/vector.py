"""Environments as a gymnasium.vector.VectorEnv with NumPy arrays, for use without the rest of neuroevo."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import error
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from neuroevo.core.bounds import MAX_SLOTS
from neuroevo.core.env_spec import EnvSpec
from neuroevo.envs.gymnasium_ids import spec_of
from neuroevo.envs.registry import check, find
from neuroevo.envs.spaces import spaces_of
from neuroevo.native.vector_env import VectorCore

_SEEDS = 2**63  # a seed is smaller
_CONSOLE_FPS = 60  # emulator frames per second


class NativeVectorEnv(VectorEnv):
    """Vector of N environments; create it with make_vec(), which documents the keyword arguments.

    step() returns observations [N, *shape], rewards float64 [N], terminations and truncations bool [N], and infos,
    arrays [N] with masks _NAME. Atari's infos are lives and episode_frame_number, which counts from the emulator's
    start; MuJoCo tasks have no infos. An episode whose simulation failed counts as terminated, with reward 0 for its
    last step; infos["failure"] (with same-step autoreset: final_info) then contains the reason, for the environments in
    infos["_failure"].

    Several threads may use it, but not concurrently. A forked child process can only close it.

    Attributes:
        observation_space: A Box [N, *shape], uint8 in [0, 255], or float32 or float64 without bounds.
        action_space: MultiDiscrete [N], or a Box of float32 [N, A] with the environment's bounds. As in Gymnasium's
            tasks, actions outside the bounds are passed to the environment unchanged.
    """

    def __init__(
        self,
        env: EnvSpec,
        num_envs: int,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        copy: bool = True,
        num_threads: int | None = None,
        max_episode_steps: int | None = None,
    ):
        mode = AutoresetMode(autoreset_mode)
        n = self.num_envs = operator.index(num_envs)
        if not 1 <= n <= MAX_SLOTS:
            raise ValueError(f"num_envs is {n}, expected 1 to {MAX_SLOTS}")
        limits = _positive("max_episode_steps", max_episode_steps), _positive("num_threads", num_threads)
        self._core = VectorCore(env, n, mode.value, *limits)
        self.single_observation_space, self.single_action_space = spaces_of(self._core)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.action_space = batch_space(self.single_action_space, n)
        screens = bool(self._core.render_shape)
        if render_mode is not None and (render_mode != "rgb_array" or not screens):
            expected = "None or 'rgb_array'" if screens else f"None: {env.name} cannot be rendered"
            raise ValueError(f"render_mode is {render_mode!r}, expected {expected}")
        self.render_mode = render_mode
        self.metadata = {"autoreset_mode": mode, "render_modes": ["rgb_array"] if screens else []}
        if screens:
            self.metadata["render_fps"] = _CONSOLE_FPS / self._core.frame_skip
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._seeds, self._has_seed = np.zeros(n, np.uint64), np.zeros(n, bool)
        self._everywhere = np.ones(n, bool)
        self._everywhere.flags.writeable = False
        self._buffers = None if copy else [self._core.new_observations(), self._core.new_observations()]
        self._process = os.getpid()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start episodes in all environments, or in those of options["reset_mask"], bool [N].

        All randomness is derived from the seeds, in [0, 2**63): an environment with seed s plays the episode of seed s,
        then the episodes derived from it, independently of the other environments.

        Args:
            seed: One seed per environment, or an int for seed, seed + 1, ...; None continues with the environment's
                next episode, or draws a seed if none was set before.
            options: {"reset_mask": bool [N]} or None.
        """
        self._require_open("reset")
        mask = self._mask(options or {})
        seeds, seeded = self._seeds_of(seed, mask)
        observations = self._next_observations()
        self._core.reset(mask, seeded, seeds, observations)
        self._seeds, self._has_seed = seeds, self._has_seed | seeded
        return observations, self._named(np.where(mask, self._core.infos, 0), mask.copy())

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments with actions [N] or [N, A]. InvalidAction: an action is not in the action space."""
        self._require_open("step")
        core, observations = self._core, self._next_observations()
        core.step(self._checked(actions), observations)
        infos = self._named(core.infos.copy(), self._everywhere)
        if self._same_step:
            self._add_finals(infos)
        elif core.failures.any():
            self._add_failures(infos)
        return observations, core.rewards.copy(), core.terminations.copy(), core.truncations.copy(), infos

    def render(self) -> tuple[np.ndarray, ...] | None:
        """Return the screens, uint8 [height, width, 3] each; None without render_mode="rgb_array"."""
        self._require_open("render")
        if self.render_mode is None:
            return None
        return tuple(self._core.render())

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]  # None: not seeded yet
        """The environments' seeds; None before the first reset."""
        return tuple(int(seed) if has else None for seed, has in zip(self._seeds, self._has_seed, strict=True))

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ARG002 - Gymnasium's signature
        """Free the environments."""
        if os.getpid() != self._process:  # a forked process lacks the environments' threads
            return
        self._core.free()

    def _add_finals(self, infos: dict[str, Any]) -> None:
        """Add the last observations and infos of the episodes that have ended."""
        ended = self._core.terminations | self._core.truncations
        if not ended.any():
            return
        observations = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(ended):
            observations[i] = self._core.final_observations[i].copy()
        final = self._named(np.where(ended, self._core.final_infos, 0), ended)
        if self._core.failures.any():
            self._add_failures(final)
        infos |= {"final_obs": observations, "_final_obs": ended, "final_info": final, "_final_info": ended.copy()}

    def _add_failures(self, infos: dict[str, Any]) -> None:
        texts = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(self._core.failures).tolist():
            texts[i] = self._core.failure(i)
        infos |= {"failure": texts, "_failure": self._core.failures.copy()}

    def _named(self, values: np.ndarray, mask: np.ndarray) -> dict[str, Any]:
        """Return infos [I, N] by name, with the mask of the environments that have them."""
        infos: dict[str, Any] = {}
        for name, row in zip(self._core.info_names, values, strict=True):
            infos[name], infos[f"_{name}"] = row, mask
        return infos

    def _next_observations(self) -> np.ndarray:
        """Return the array for the observations of the next call."""
        if self._buffers is None:
            return self._core.new_observations()
        self._buffers.reverse()
        return self._buffers[0]

    def _mask(self, options: dict[str, Any]) -> np.ndarray:
        """Return the reset mask, without removing it from options. ValueError: options or the mask is invalid."""
        for key in options:
            if key != "reset_mask":
                raise ValueError(f"options has the key {key!r}, expected 'reset_mask' or nothing")
        mask = options.get("reset_mask", self._everywhere)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"reset_mask is {mask!r}, expected a bool array [{self.num_envs}] with a True in it")
        return np.ascontiguousarray(mask)

    def _seeds_of(self, seed: int | Sequence[int | None] | None, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return seeds, uint64 [N], and which environments of the mask get a given or drawn seed, bool [N]."""
        given: list[Any]  # not yet validated
        one = int(seed) if isinstance(seed, (int, np.integer)) else None
        if one is not None:
            given = [one + i for i in range(self.num_envs)]
        else:
            given = list(seed) if isinstance(seed, Iterable) else [seed] * self.num_envs
        if len(given) != self.num_envs:
            raise ValueError(f"seed has {len(given)} values, expected one per environment: {self.num_envs}")
        for value in given:
            if value is not None and not (isinstance(value, (int, np.integer)) and 0 <= value < _SEEDS):
                raise ValueError(f"seed is {value}, expected an integer in [0, 2**63)")
        if one is not None:
            super().reset(seed=one)  # seeds np_random
        seeds, seeded = self._seeds.copy(), np.zeros(self.num_envs, bool)
        for i in np.flatnonzero(mask):
            if given[i] is not None or not self._has_seed[i]:
                seeds[i] = self.np_random.integers(_SEEDS) if given[i] is None else given[i]
                seeded[i] = True
        return seeds, seeded

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """Convert actions to the core's dtype; the core checks their values."""
        discrete = self._core.discrete
        actions = np.asarray(actions)
        if actions.dtype.kind not in ("iu" if discrete else "fiu"):
            expected = "integers" if discrete else "numbers"
            raise error.InvalidAction(f"actions have dtype {actions.dtype}, expected {expected}")
        shape, expected_shape = list(actions.shape), list(self.action_space.shape or ())
        if shape != expected_shape:
            raise error.InvalidAction(f"actions have shape {shape}, expected {expected_shape}")
        with np.errstate(over="ignore"):  # the core reports infinite values
            return np.ascontiguousarray(actions, np.int64 if discrete else np.float32)

    def _require_open(self, what: str) -> None:
        if os.getpid() != self._process:
            raise error.ClosedEnvironmentError(
                f"{what} was called in a fork of the process that created the environments: create them in the fork"
            )
        if self.closed:
            raise error.ClosedEnvironmentError(f"{what} was called after close")
        if what != "reset" and not self._has_seed.any():
            raise error.ResetNeeded(f"{what} was called before reset")


def make_vec(
    name: str,
    num_envs: int = 1,
    *,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    render_mode: str | None = None,
    copy: bool = True,
    num_threads: int | None = None,
    max_episode_steps: int | None = None,
    **options: Any,
) -> NativeVectorEnv:
    """Create a vector of environments.

    Args:
        name: Name of the environment, as in a configuration, such as ALE/Frostbite-v5 or HalfCheetah-v5.
        num_envs: Number of environments, N.
        autoreset_mode: "NextStep", "SameStep" or "Disabled", as Gymnasium defines them.
        render_mode: None or "rgb_array".
        copy: True: each call returns a new array of observations. False: calls alternate between two arrays, so that
            the observations of a call are overwritten by the second call after it.
        num_threads: Threads of a separate pool for these environments; None for the process's pool, see
            library.set_threads().
        max_episode_steps: Steps after which episodes are truncated; None for the environment's default.
        **options: Options of the environment, as in [env.options]; those that are None have their defaults.

    Raises:
        UserError: The name or an option is unknown or invalid. UserError is a ValueError.
    """
    given = {"max_episode_steps": max_episode_steps, **options}
    known, _ = check(name, {})
    if known is not None and hasattr(known.options, "max_episode_steps"):
        options["max_episode_steps"], max_episode_steps = max_episode_steps, None
    environment = find(name, options)
    env = NativeVectorEnv(
        environment.spec,
        num_envs,
        autoreset_mode=autoreset_mode,
        render_mode=render_mode,
        copy=copy,
        num_threads=num_threads,
        max_episode_steps=max_episode_steps,
    )
    mode = env.metadata["autoreset_mode"].value
    keywords = {"autoreset_mode": mode, "render_mode": render_mode, "copy": copy, "num_threads": num_threads}
    env.spec = spec_of(environment, {"name": name, "num_envs": env.num_envs, **keywords, **given})
    return env


def _positive(name: str, value: int | None) -> int:
    """Return a positive int32, or 0 for None. ValueError: the value is out of range."""
    if value is not None and not 1 <= operator.index(value) < 2**31:
        raise ValueError(f"{name} is {value}, expected None or 1 or more")
    return value or 0
