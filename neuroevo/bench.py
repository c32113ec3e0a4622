"""Measurements behind `neuroevo bench`: rates of whole rollouts and of environments alone, on this machine now."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import tensorflow as tf

from neuroevo import envs, ops
from neuroevo.errors import UserError, did_you_mean
from neuroevo.evaluator import default_layout
from neuroevo.networks import DTYPES, NETWORKS
from neuroevo.pipeline import Pipeline

_CUTOFF = 5000  # steps, as in training: some random networks never start a game
_WARM_UP_SECONDS = 2.0
_STEPS_A_CALL = 20
_WAIT_SECONDS = 0.05  # for episodes to end, as the evaluator does


def rollout(
    game: str,
    network: str,
    seconds: float,
    threads: int | None = None,
    lanes: int | None = None,
    slots: int | None = None,
    seed: int = 0,
    dtype: str = "float32",
) -> dict[str, object]:
    """Steady rate of rollouts of freshly initialised genomes, a different one for every episode.

    Returns frames_per_s, steps_per_s, idle_share (of the worker threads' time, without work), outside_us and
    outside_share (processor time a step outside environments and networks: TensorFlow's loop, the queue, Python; and
    its share of all; they need cores that nobody else uses), resident_mb (of the whole process) and
    resident_mb_before (TensorFlow imported, nothing made yet), and what was measured.
    """
    if network not in NETWORKS:
        raise UserError(f"network '{network}' is unknown, expected one of {', '.join(NETWORKS)}")
    if dtype not in DTYPES:
        raise UserError(f"dtype '{dtype}' is unknown{did_you_mean(dtype, DTYPES)}, expected one of {', '.join(DTYPES)}")
    recipe = envs.resolve(game)
    before = resident_mb()
    if threads is not None:
        ops.set_threads(threads)
    threads = ops.get_threads()
    default_lanes, default_slots = default_layout(threads)
    lanes, slots = lanes or default_lanes, slots or default_slots
    pipeline = Pipeline(recipe, [NETWORKS[network]], lanes=lanes, slots=slots, parent_rows=1, dtype=dtype)
    try:
        pipeline.start()
        submitted = 0

        def steps_after(duration: float) -> tuple[int, float]:
            """Keeps the queue filled for a while; returns the steps so far and the time."""
            nonlocal submitted
            end = time.perf_counter() + duration
            while time.perf_counter() < end:
                ended, _, _ = pipeline.results(1, _WAIT_SECONDS)
                wanted = len(ended) if submitted else 2 * lanes * slots
                ids = range(submitted, submitted + wanted)
                submitted += wanted
                if wanted:
                    pipeline.submit(
                        episode_ids=ids,
                        episode_genomes=range(wanted),
                        episode_seeds=[seed + i for i in ids],
                        episode_max_frames=[_CUTOFF * pipeline.frame_skip] * wanted,
                        genome_ids=ids,
                        genome_networks=[0] * wanted,
                        genome_sources=[-1] * wanted,
                        genome_seeds=[seed + i for i in ids],
                        chains=[()] * wanted,
                    )
            pipeline.results()
            return pipeline.total_steps, time.perf_counter()

        steps_before, began = steps_after(_WARM_UP_SECONDS)
        busy, processor = ops.busy_seconds(), time.process_time()
        steps, ended = steps_after(seconds)
        busy, processor = ops.busy_seconds() - busy, time.process_time() - processor
        rate = (steps - steps_before) / (ended - began)
        return {
            "bench": "rollout",
            "game": recipe.name,
            "network": network,
            "dtype": dtype,
            "threads": threads,
            "lanes": lanes,
            "slots": slots,
            "seconds": round(ended - began, 2),
            "frames_per_s": round(rate * pipeline.frame_skip, 1),
            "steps_per_s": round(rate, 1),
            "idle_share": round(1 - busy / (threads * (ended - began)), 4),
            "outside_us": round(1e6 * (processor - busy) / (steps - steps_before), 2),
            "outside_share": round((processor - busy) / processor, 4),
            "resident_mb": resident_mb(),
            "resident_mb_before": before,
        }
    finally:
        pipeline.close()


def env(name: str, envs: int, threads: int | None, seconds: float, seed: int = 0) -> dict[str, object]:
    """Rate of stepping and observing `envs` environments through the ops, with random actions.

    As in a rollout there are lanes, as many as threads, that step their part of the environments in a graph loop.
    """
    from neuroevo.envs import resolve

    recipe = resolve(name)
    if threads is not None:
        ops.set_threads(threads)
    native, threads = ops.tf_ops(), ops.get_threads()
    with tf.device("/cpu:0"):
        pool = native.env_pool_make(family=recipe.family, options=list(recipe.options), slots=envs)
        spec = native.env_pool_spec(pool)
        native.env_reset(pool, np.arange(envs), np.arange(envs) + seed, np.zeros(envs, np.int64))
    step = _stepping(spec)
    lanes = [slots for slots in np.array_split(np.arange(envs), min(threads, envs)) if len(slots)]

    def steps_until(end: float, slots: np.ndarray, generator: tf.random.Generator) -> int:
        steps = 0
        while time.perf_counter() < end:
            step(pool, slots, generator)
            steps += _STEPS_A_CALL * len(slots)
        return steps

    generators = [tf.random.Generator.from_seed(seed + lane) for lane in range(len(lanes))]
    with ThreadPoolExecutor(len(lanes)) as executor:

        def play(duration: float) -> float:
            """Steps a second."""
            began = time.perf_counter()
            end = [began + duration] * len(lanes)
            return sum(executor.map(steps_until, end, lanes, generators)) / (time.perf_counter() - began)

        play(min(_WARM_UP_SECONDS, seconds))
        rate = play(seconds)
    return {
        "bench": "env",
        "env": recipe.name,
        "envs": envs,
        "threads": threads,
        "seconds": seconds,
        "frames_per_s": round(rate * int(spec.frame_skip), 1),
        "steps_per_s": round(rate, 1),
        "resident_mb": resident_mb(),
    }


def _stepping(spec: tf.Tensor) -> tf.types.experimental.PolymorphicFunction:
    """A graph that steps slots _STEPS_A_CALL times with random actions, and resets those whose episode is over."""
    native = ops.tf_ops()
    dtype, shape = tf.as_dtype(spec.observation_dtype.numpy().decode()), spec.observation_shape.numpy().tolist()
    num_actions = int(spec.num_actions)

    @tf.function(autograph=False)
    def run(pool: tf.Tensor, slots: tf.Tensor, generator: tf.random.Generator) -> tf.Tensor:
        def step(i: tf.Tensor, pixels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            actions = generator.uniform(tf.shape(slots), 0, num_actions, tf.int32)
            _, dones = native.env_step(pool, slots, actions)
            over = tf.boolean_mask(slots, dones)
            seeds = generator.uniform(tf.shape(over), 0, 2**62, tf.int64)
            with tf.control_dependencies([native.env_reset(pool, over, seeds, tf.zeros_like(over))]):
                observations = native.env_observation(pool, slots, dtype=dtype, shape=shape)
            return i + 1, pixels + tf.size(observations)  # every observation is made

        start = tf.constant(0), tf.constant(0)
        return tf.while_loop(lambda i, _: i < _STEPS_A_CALL, step, start, parallel_iterations=1)[1]

    return run


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in 10^6 bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6, 1)
