"""Recorded actions played through the TensorFlow ops, so that bare MuJoCo can be measured on the same episodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.rollout.tensorflow.ops import load_ops

_STEPS_PER_ITERATION = 20  # per iteration of the graph's loop, whose own ops take as long as a step


def replay(name: str, actions: str, slots: int, threads: int) -> Callable[[float], dict[str, Any]]:
    """Play the actions in a file of mujoco_bench repeatedly, in one lane per thread, each a graph loop.

    Seeds are those of mujoco_bench.cc. Only steps played while all lanes were playing count.

    Args:
        name: The environment's name.
        actions: Path of a file with float32 [steps, threads * slots, num_actions]; steps is a multiple of 20.
        slots: Number of slots per lane.
        threads: Number of worker threads, one per lane.

    Returns:
        A function of seconds that gives steps_per_s and last_observations as mujoco_bench.cc does.
    """
    library.set_threads(threads)
    native, recipe = load_ops(), registry.resolve(name)
    with tf.device("/cpu:0"):
        pool = native.env_pool_make(family=recipe.family, options=list(recipe.options), slots=threads * slots)
        spec = native.env_pool_spec(pool)
        table = np.fromfile(actions, np.float32).reshape(-1, threads * slots, int(spec.num_actions))
        if len(table) % _STEPS_PER_ITERATION:
            raise ValueError(f"there are {len(table)} steps, expected a multiple of {_STEPS_PER_ITERATION}")
        lanes = [tf.constant(lane) for lane in np.array_split(np.arange(threads * slots), threads)]
        tables = [tf.constant(part) for part in np.array_split(table, threads, axis=1)]
        end = tf.Variable(0.0, dtype=tf.float64)  # in the time of tf.timestamp()
    dtype, shape = spec.observation_dtype.numpy().decode(), spec.observation_shape.numpy().tolist()
    run = _replaying(dtype, shape)
    run(pool, lanes[0], tables[0], end)  # traces the graph

    def measure(seconds: float) -> dict[str, Any]:
        end.assign(time.time() + seconds)
        with ThreadPoolExecutor(threads) as executor:
            played = list(executor.map(run, [pool] * threads, lanes, tables, [end] * threads))
        seen = native.env_observation(pool, np.arange(threads * slots), dtype=dtype, shape=shape).numpy()
        return {
            "steps_per_s": sum(len(table) * slots * int(times) / float(wall) for times, wall in played),
            "last_observations": int(np.bitwise_xor.reduce(seen.view(np.uint64), axis=None)),
        }

    return measure


def _replaying(dtype: str, shape: list[int]) -> tf.types.experimental.PolymorphicFunction:
    """Return a graph that plays a table of actions, [steps, K, num_actions], in the slots [K] until the time `end`.

    It plays the table at least twice, and returns the number of repetitions without the last one, which continued past
    the end, and their time.
    """
    native = load_ops()

    @tf.function(autograph=False)
    def run(pool: tf.Tensor, slots: tf.Tensor, table: tf.Tensor, end: tf.Variable) -> tuple[tf.Tensor, tf.Tensor]:
        def restart(starts: tf.Tensor) -> tf.Operation:
            """Start episodes with the slots, seeds and step limits `starts`, [R, 3]."""
            none = tf.zeros([0], tf.int64)
            return native.env_reset(pool, *tf.unstack(starts, 3, axis=1), none)

        def step(action: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
            _, dones, _ = native.env_step(pool, slots, action)
            with tf.control_dependencies([restart(tf.gather_nd(starts, tf.where(dones)))]):
                return native.env_observation(pool, slots, dtype=dtype, shape=shape)

        steps, _, size = table.shape
        iterations = steps // _STEPS_PER_ITERATION
        actions = tf.reshape(table, [iterations, _STEPS_PER_ITERATION, -1, size])
        seeds = slots + 2**20 * tf.range(steps + 1, dtype=tf.int64)[:, None]
        starts = tf.stack([tf.zeros_like(seeds) + slots, seeds, tf.zeros_like(seeds)], axis=2)
        again = tf.reshape(starts[1:], [iterations, _STEPS_PER_ITERATION, -1, 3])

        def several(i: tf.Tensor) -> tuple[tf.Tensor]:
            before: list[tf.Tensor] = []
            for action, start in zip(tf.unstack(actions[i]), tf.unstack(again[i]), strict=True):
                with tf.control_dependencies(before):  # all observations are complete
                    before = [step(action, start)]
            with tf.control_dependencies(before):
                return (i + 1,)

        def play(times: tf.Tensor, now: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            with tf.control_dependencies([restart(starts[0])]):
                first = (tf.identity(tf.constant(0)),)
            (played,) = tf.while_loop(lambda i: i < iterations, several, first, parallel_iterations=1)
            with tf.control_dependencies([played]):
                return times + 1, tf.timestamp(), now

        with tf.device("/cpu:0"):  # TensorFlow would take a GPU for the little that it can compute there
            began = tf.timestamp()
            loop = (tf.constant(0), began, began)
            times, _, before = tf.while_loop(
                lambda times, now, _: tf.logical_or(times < 2, now < end.read_value()),
                play,
                loop,
                parallel_iterations=1,
            )
            return times - 1, before - began

    return run
