"""Measurements behind `neuroevo bench`: rates of whole rollouts and of environments alone, on this machine now."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from neuroevo import envs, ops
from neuroevo.errors import UserError
from neuroevo.evaluator import default_layout
from neuroevo.networks import NETWORKS
from neuroevo.pipeline import Pipeline

_CUTOFF = 5000  # steps, as in training: some random networks never start a game
_WARM_UP_SECONDS = 2.0


def rollout(
    game: str,
    network: str,
    seconds: float,
    threads: int | None = None,
    lanes: int | None = None,
    slots: int | None = None,
    seed: int = 0,
) -> dict[str, object]:
    """Steady rate of rollouts of freshly initialised genomes, a different one for every episode.

    Returns frames_per_s, steps_per_s, resident_mb (of the whole process) and resident_mb_before (TensorFlow imported,
    nothing made yet), and what was measured.
    """
    if network not in NETWORKS:
        raise UserError(f"network '{network}' is unknown, expected one of {', '.join(NETWORKS)}")
    recipe = envs.resolve(game)
    before = _resident_mb()
    if threads is not None:
        ops.set_threads(threads)
    threads = ops.get_threads()
    default_lanes, default_slots = default_layout(threads)
    lanes, slots = lanes or default_lanes, slots or default_slots
    pipeline = Pipeline(recipe, [NETWORKS[network]], lanes=lanes, slots=slots, parent_rows=1)
    try:
        pipeline.start()
        submitted = 0

        def steps_after(duration: float) -> tuple[int, float]:
            """Keeps the queue filled for a while; returns the steps so far and the time."""
            nonlocal submitted
            end = time.perf_counter() + duration
            while time.perf_counter() < end:
                ended, _, _ = pipeline.results()
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
                time.sleep(0.01)
            pipeline.results()
            return pipeline.total_steps, time.perf_counter()

        steps_before, began = steps_after(_WARM_UP_SECONDS)
        steps, ended = steps_after(seconds)
        rate = (steps - steps_before) / (ended - began)
        return {
            "bench": "rollout",
            "game": recipe.name,
            "network": network,
            "threads": threads,
            "lanes": lanes,
            "slots": slots,
            "seconds": round(ended - began, 2),
            "frames_per_s": round(rate * pipeline.frame_skip, 1),
            "steps_per_s": round(rate, 1),
            "resident_mb": _resident_mb(),
            "resident_mb_before": before,
        }
    finally:
        pipeline.close()


def env(name: str, envs: int, threads: int | None, seconds: float, seed: int = 0) -> dict[str, object]:
    """Rate of stepping and observing `envs` environments through the ops, with random actions."""
    from neuroevo.envs import resolve

    recipe = resolve(name)
    if threads is not None:
        ops.set_threads(threads)
    native, rng, slots = ops.tf_ops(), np.random.default_rng(seed), np.arange(envs)
    with tf.device("/cpu:0"):
        pool = native.env_pool_make(family=recipe.family, options=list(recipe.options), slots=envs)
        spec = native.env_pool_spec(pool)
        dtype, shape = tf.as_dtype(spec.observation_dtype.numpy().decode()), spec.observation_shape.numpy().tolist()
        num_actions, frame_skip = int(spec.num_actions), int(spec.frame_skip)

        def reset(which: np.ndarray) -> None:
            native.env_reset(pool, which, rng.integers(2**62, size=len(which)), np.zeros(len(which), np.int64))

        def steps_until(end: float) -> int:
            steps = 0
            while time.perf_counter() < end:
                actions = rng.integers(num_actions, size=envs, dtype=np.int32)
                _, dones = native.env_step(pool, slots, actions)
                if dones.numpy().any():
                    reset(slots[dones.numpy()])
                native.env_observation(pool, slots, dtype=dtype, shape=shape)
                steps += envs
            return steps

        reset(slots)
        steps_until(time.perf_counter() + min(_WARM_UP_SECONDS, seconds))
        began = time.perf_counter()
        steps = steps_until(began + seconds)
        elapsed = time.perf_counter() - began
    return {
        "bench": "env",
        "env": recipe.name,
        "envs": envs,
        "threads": ops.get_threads(),
        "seconds": round(elapsed, 2),
        "frames_per_s": round(steps * frame_skip / elapsed, 1),
        "steps_per_s": round(steps / elapsed, 1),
        "resident_mb": _resident_mb(),
    }


def _resident_mb() -> float:
    """Memory of this process that is in RAM now, in 10^6 bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6, 1)
