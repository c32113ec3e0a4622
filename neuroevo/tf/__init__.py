"""Environments and populations of networks as TensorFlow ops, for use in custom graphs.

    EnvPool     environments that are reset, stepped and observed inside a tf.function
    Population  networks with different weights that are evaluated in one call

Calls of one object run in program order. Calls of different objects run in parallel if neither depends on the other's
tensors: with two pools of half the environments each, the emulators of one pool run in parallel with the networks of
the other pool.

Example:
    >>> import tensorflow as tf
    >>> from neuroevo.tf import EnvPool
    >>> pool = EnvPool("pong", num_envs=64, seed=0)
    >>> @tf.function
    ... def play(steps):
    ...     total = tf.zeros([64])
    ...     for _ in tf.range(steps):
    ...         observations = pool.observe()
    ...         actions = tf.random.uniform([64], 0, pool.num_actions, tf.int32)
    ...         total += pool.step(actions).rewards
    ...     return total
    >>> pool.reset()
    >>> play(100).shape
    TensorShape([64])
"""

from neuroevo.tf.env_pool import EnvPool, Step
from neuroevo.tf.population import Population

__all__ = ["EnvPool", "Population", "Step"]
