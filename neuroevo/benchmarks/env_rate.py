"""Benchmark of the throughput of environments without networks, stepped by TensorFlow ops: `bench env`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import tensorflow as tf

from neuroevo.benchmarks import rates
from neuroevo.benchmarks.random_play import random_play
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.errors import NativeArgumentError, UserError
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.rollout.tensorflow.env_pool import OpEnvPool
from neuroevo.rollout.tensorflow.ops import load_ops


def env(
    name: str,
    envs: int,
    threads: int | None,
    seconds: float,
    seed: int = 0,
    env_options: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Measure the throughput of stepping and observing environments with random actions.

    As in a rollout, lanes step their part of the environments in graph loops; there are at most `threads` lanes.

    Args:
        name: Name of the environment.
        envs: Number of environments.
        threads: Worker threads; None for one per core.
        seconds: Duration of the measurement in wall-clock seconds, after a warm-up.
        seed: Seed of episodes and actions.
        env_options: Options of the environment.

    Returns:
        The arguments (bench, env, envs, threads, seconds), frames_per_s, steps_per_s, and resident_mb, the memory of
        the process at the end in 10^6 bytes.

    Raises:
        UserError: No such environment exists, or its actions have no finite bounds.
    """
    made_of = registry.resolve(name, env_options)
    if threads is not None:
        library.set_threads(threads)
    threads = library.get_threads()
    made = make_pool(made_of, envs)
    pool = made.handle
    with tf.device("/cpu:0"):
        none = np.zeros(0, np.int64)
        load_ops().env_reset(pool, np.arange(envs), np.arange(envs) + seed, np.zeros(envs, np.int64), none)
    low, high = made.action_low.tolist(), made.action_high.tolist()
    if not np.isfinite([low, high]).all():
        raise UserError(
            f"actions of {made_of.name} are in [{low}, {high}], expected finite bounds for sampling random actions"
        )
    bounds = (tuple(low), tuple(high)) if low else None
    play_lane = random_play(made.observation_dtype.name, made.observation_shape, made.num_actions, bounds)
    lanes = [slots for slots in np.array_split(np.arange(envs), min(threads, envs)) if len(slots)]
    with tf.device("/cpu:0"):
        lanes = [tf.constant(slots) for slots in lanes]
        seeds = [tf.constant(seed + lane, tf.int64) for lane in range(len(lanes))]
        end = tf.Variable(0.0, dtype=tf.float64)  # compared with tf.timestamp()
    with ThreadPoolExecutor(len(lanes)) as executor:

        def play(duration: float) -> float:
            """Step all lanes for `duration` seconds and return the steps per second."""
            began = time.perf_counter()
            end.assign(time.time() + duration)
            try:
                same = [pool] * len(lanes), lanes, seeds, [end] * len(lanes)
                steps = sum(int(each) for each in executor.map(play_lane, *same))
            except BaseException:  # also stop the lanes on KeyboardInterrupt
                end.assign(0.0)
                raise
            return steps / (time.perf_counter() - began)

        play(min(rates.WARM_UP_SECONDS, seconds))
        rate = play(seconds)
    return {
        "bench": "env",
        "env": made_of.name,
        "envs": envs,
        "threads": threads,
        "seconds": seconds,
        "frames_per_s": round(rate * made.frame_skip, 1),
        "steps_per_s": round(rate, 1),
        "resident_mb": rates.resident_mb(),
    }


def make_pool(env: EnvSpec, slots: int) -> OpEnvPool:
    """Make environments.

    Args:
        env: Specification of the environments.
        slots: Number of environments.

    Raises:
        UserError: The native core rejects an option or the number.
    """
    try:
        return OpEnvPool(env, slots)
    except NativeArgumentError as error:
        raise UserError(f"{env.name} cannot be made: {error}") from None
