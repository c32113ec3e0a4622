"""Environments that are stepped inside TensorFlow graphs."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from neuroevo.core.errors import UserError
from neuroevo.envs.registry import find
from neuroevo.rollout.tensorflow.env_pool import OpEnvPool
from neuroevo.rollout.tensorflow.ops import load_ops


class Step(NamedTuple):
    """Result of stepping K environments.

    Attributes:
        rewards: float32 [K].
        terminated: bool [K], whether the episode reached a terminal state.
        truncated: bool [K], whether the episode ended only because it reached its maximum length.
    """

    rewards: tf.Tensor
    terminated: tf.Tensor
    truncated: tf.Tensor


class EnvPool:
    """Environments whose reset, step and observe are ops of a TensorFlow graph.

    The methods take and return tensors, eagerly or inside a tf.function, without running Python code in each step. The
    threads of the process step all environments of a call in parallel. Each method takes the indices of the
    environments to use, so that a graph can step any subset of them.

    Args:
        name: Name of an environment as in a configuration, such as "pong", "ALE/Pong-v5" or "Hopper-v5".
        num_envs: Number of environments, N.
        seed: Seed of the episodes. Pools with equal seeds and actions run identical episodes.
        autoreset: Whether `step` resets environments whose episode has ended, so that the next observation is the first
            of the new episode.
        max_episode_steps: Steps after which episodes are truncated; None for the environment's limit.
        **options: Options of the environment as in [env.options].

    Attributes:
        num_envs: Number of environments, N.
        observation_shape: Shape of one observation.
        observation_dtype: Dtype of observations: tf.uint8, tf.float32 or tf.float64.
        discrete: Whether an action is an index in [0, num_actions) rather than a vector.
        num_actions: Number of discrete actions, or length A of an action vector.
        action_dtype: tf.int32 for discrete actions, tf.float32 for vectors.
        action_low: Lower bounds of an action vector, float32 [A]; [0] for discrete actions.
        action_high: Upper bounds of an action vector, float32 [A]; [0] for discrete actions.
        frame_skip: Emulator frames per step.

    Raises:
        UserError: The name is unknown, or ops do not support the environment.
        ConfigError: An option is invalid.
        ValueError: `num_envs` or `max_episode_steps` is below 1.
    """

    def __init__(
        self,
        name: str,
        num_envs: int,
        *,
        seed: int = 0,
        autoreset: bool = True,
        max_episode_steps: int | None = None,
        **options: Any,
    ):
        for keyword, value in (("num_envs", num_envs), ("max_episode_steps", max_episode_steps)):
            if value is not None and operator.index(value) < 1:
                raise ValueError(f"{keyword} is {value}, expected 1 or more")
        environment = find(name, options)
        if environment.simulator:
            raise UserError(f"environment '{name}' is simulated by JAX, expected one that the native core steps")
        self._pool = OpEnvPool(environment.spec, num_envs)
        self._handle = self._pool.handle
        self._autoreset = autoreset
        self._max_frames = (max_episode_steps or 0) * self._pool.frame_skip
        with tf.device("/cpu:0"):
            self._random = tf.random.Generator.from_seed(seed)
            self._all = tf.range(num_envs, dtype=tf.int64)
        self.num_envs = num_envs
        self.observation_shape = self._pool.observation_shape
        self.observation_dtype = tf.as_dtype(self._pool.observation_dtype)
        self.action_dtype = tf.as_dtype(self._pool.action_dtype)
        self.discrete = self.action_dtype == tf.int32
        self.num_actions = self._pool.num_actions
        self.frame_skip = self._pool.frame_skip
        self.action_low: np.ndarray = self._pool.action_low
        self.action_high: np.ndarray = self._pool.action_high

    def reset(self, envs: tf.Tensor | None = None, seeds: tf.Tensor | None = None) -> None:
        """Start an episode in each environment.

        Args:
            envs: Indices of the environments, int64 [K], all different; None for all.
            seeds: Seeds of the episodes, int64 [K]; None to draw them from the pool's seed.
        """
        with tf.device("/cpu:0"):
            envs = self._indices(envs)
            if seeds is None:
                seeds = self._random.uniform(tf.shape(envs), 0, tf.int64.max, tf.int64)
            frames = tf.fill(tf.shape(envs), tf.constant(self._max_frames, tf.int64))
            load_ops().env_reset(self._handle, envs, seeds, frames, tf.zeros([0], tf.int64))

    def step(self, actions: tf.Tensor, envs: tf.Tensor | None = None) -> Step:
        """Step environments.

        Args:
            actions: int32 [K] in [0, num_actions), or float32 [K, A]. A vector with a non-finite number ends its
                episode with reward 0.
            envs: Indices of the environments, int64 [K], all different, each in an episode; None for all.

        Returns:
            Rewards and whether the episodes ended.

        Raises:
            tf.errors.InvalidArgumentError: An environment is not in an episode, an action or index is out of range, or
                a shape does not fit.
        """
        with tf.device("/cpu:0"):
            envs = self._indices(envs)
            rewards, dones, truncated = load_ops().env_step(self._handle, envs, tf.cast(actions, self.action_dtype))
            if self._autoreset:
                self.reset(tf.boolean_mask(envs, dones))
            return Step(tf.cast(rewards, tf.float32), dones & ~truncated, truncated)

    def observe(self, envs: tf.Tensor | None = None) -> tf.Tensor:
        """Return the current observations.

        Args:
            envs: Indices of the environments, int64 [K], all different, each reset at least once; None for all.

        Returns:
            Observations [K, *observation_shape] of dtype `observation_dtype`.
        """
        with tf.device("/cpu:0"):
            return load_ops().env_observation(
                self._handle, self._indices(envs), dtype=self.observation_dtype, shape=self.observation_shape
            )

    def actions(self, outputs: tf.Tensor) -> tf.Tensor:
        """Convert network outputs to actions with the same rules as training.

        Args:
            outputs: float32 [K, W]: one output per discrete action, whose argmax is the action; or A numbers in
                [-1, 1], which are scaled to the bounds.

        Returns:
            Actions as `step` takes them.
        """
        with tf.device("/cpu:0"):
            return load_ops().env_actions(self._handle, outputs, T=self.action_dtype)

    def render(self, envs: tf.Tensor | None = None) -> tf.Tensor:
        """Return the screens, uint8 [K, height, width, 3].

        Args:
            envs: Indices of the environments, int64 [K], all different, each reset at least once; None for all.
        """
        with tf.device("/cpu:0"):
            return load_ops().env_render(self._handle, self._indices(envs))

    def _indices(self, envs: tf.Tensor | None) -> tf.Tensor:
        return self._all if envs is None else tf.cast(envs, tf.int64)

    def __repr__(self) -> str:
        return f"EnvPool({self.num_envs} environments, observations {self.observation_shape})"
