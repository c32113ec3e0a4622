"""Env pool based on the TensorFlow ops, with the methods that evaluators need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from neuroevo.core.env_spec import EnvSpec
from neuroevo.rollout.tensorflow.ops import int64, load_ops, raises_native_errors


class OpEnvPool:
    """Environments as TensorFlow ops; see native.env_pool.EnvPool for the attributes and methods.

    Args:
        env: Specification of the environment.
        slots: Number of slots, S.

    Attributes:
        handle: Resource handle for the ops.
    """

    @raises_native_errors
    def __init__(self, env: EnvSpec, slots: int):
        with tf.device("/cpu:0"):
            self.handle = load_ops().env_pool_make(family=env.family, options=list(env.options), slots=slots)
            spec = load_ops().env_pool_spec(self.handle)
        self.observation_dtype = np.dtype(spec.observation_dtype.numpy().decode())
        self.observation_shape: tuple[int, ...] = tuple(spec.observation_shape.numpy().tolist())
        self.action_dtype = np.dtype(spec.action_dtype.numpy().decode())
        self.num_actions = int(spec.num_actions)
        self.frame_skip = int(spec.frame_skip)
        self.behavior_dtype = np.dtype(spec.behavior_dtype.numpy().decode())
        self.behavior_shape: tuple[int, ...] = tuple(spec.behavior_shape.numpy().tolist())
        self.behavior_size = 0
        self.retries = env.retries
        self.action_low, self.action_high = spec.action_low.numpy(), spec.action_high.numpy()

    @raises_native_errors
    def record_behaviors(self, every: int, samples: int) -> None:
        """Record the behavior of every episode; call this before the first reset."""
        with tf.device("/cpu:0"):
            load_ops().env_record_behaviors(self.handle, int64(every), int64(samples))
        self.behavior_size = math.prod(self.behavior_shape) * (samples if every else 1)

    @raises_native_errors
    def actions(self, outputs: np.ndarray) -> np.ndarray:
        """Convert networks' outputs, float32 [K, W], to the environments' actions."""
        with tf.device("/cpu:0"):
            return load_ops().env_actions(self.handle, outputs, T=self.action_dtype).numpy()

    @raises_native_errors
    def set_normalizer(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Register a normalizer; mean, std float64 [n]."""
        with tf.device("/cpu:0"):
            load_ops().env_set_normalizer(self.handle, int64(number), mean, std)

    @raises_native_errors
    def drop_normalizers(self, numbers: Sequence[int] | np.ndarray) -> None:
        """Remove normalizers."""
        with tf.device("/cpu:0"):
            load_ops().env_drop_normalizers(self.handle, int64(numbers))
