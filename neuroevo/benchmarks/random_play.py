"""Graph loop that steps environments with random actions, for benchmarks without networks."""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf

from neuroevo.rollout.tensorflow.ops import load_ops


@functools.cache
def random_play(
    dtype: str, shape: tuple[int, ...], num_actions: int, bounds: tuple[tuple[float, ...], tuple[float, ...]] | None
) -> tf.types.experimental.PolymorphicFunction:
    """Make a graph that steps slots with random actions and resets slots whose episode is over.

    Args:
        dtype: Name of the observations' dtype.
        shape: Shape of an observation.
        num_actions: Number of discrete actions, or length A of an action vector.
        bounds: Lower and upper bounds of an action vector, [A] each; None for discrete actions.

    Returns:
        A function of the pool's handle, the slots int64 [K], a seed int64 and `end`, a float64 variable with the
        tf.timestamp() at which to stop. It reads `end` before each step and returns the number of environment steps,
        int64.
    """
    native = load_ops()

    def draw(count: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """Draw random actions for `count` slots."""
        if bounds is None:
            return tf.raw_ops.StatelessRandomUniformInt(shape=[count], seed=seed, minval=0, maxval=num_actions)
        low, high = (np.array(each, np.float32) for each in bounds)
        return low + (high - low) * tf.raw_ops.StatelessRandomUniform(shape=[count, num_actions], seed=seed)

    def run(pool: tf.Tensor, slots: tf.Tensor, seed: tf.Tensor, end: tf.Variable) -> tf.Tensor:
        none = tf.zeros([0], tf.int64)

        def step(i: tf.Tensor) -> tuple[tf.Tensor]:
            _, dones, _ = native.env_step(pool, slots, draw(tf.size(slots), [seed, i]))
            over = tf.gather(slots, tf.where(dones)[:, 0])
            episodes = over, over + i * 2**20, tf.zeros_like(over), none
            with tf.control_dependencies([native.env_reset(pool, *episodes)]):
                observations = native.env_observation(pool, slots, dtype=dtype, shape=shape)
            with tf.control_dependencies([observations]):  # a step includes its observations
                return (i + 1,)

        with tf.device("/cpu:0"):  # otherwise TensorFlow would place a few small ops on a GPU
            start = (tf.constant(0, tf.int64),)
            (steps,) = tf.while_loop(lambda _: tf.timestamp() < end.read_value(), step, start, parallel_iterations=1)
            return steps * tf.size(slots, tf.int64)

    return tf.function(run, autograph=False)
