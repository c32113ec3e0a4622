"""Measurements behind `neuroevo bench`: rates of whole rollouts and of environments alone, on this machine now."""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import tensorflow as tf

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.problems import did_you_mean
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.native.submission import pack
from neuroevo.networks.architectures import DTYPES, check, named
from neuroevo.rollout.evaluator import default_layout
from neuroevo.rollout.pipeline import Pipeline, make_env_pool
from neuroevo.rollout.tf_ops import load_ops

_MAX_EPISODE_STEPS = 5000  # steps, as in training: some random networks never start a game
WARM_UP_SECONDS = 2.0
_WAIT_SECONDS = 0.05  # for episodes to end, as the evaluator does


class Rollout:
    """Rollouts of freshly initialized genomes, a different one for every episode, by a pipeline that is always busy.

    lanes, slots: by default chosen for the threads and the device. backend: of the population, instead of the device's.
    setup: what is played with what. UserError: one of these is unknown or cannot be had.
    """

    def __init__(
        self,
        game: str,
        network: str,
        *,
        threads: int | None = None,
        lanes: int | None = None,
        slots: int | None = None,
        seed: int = 0,
        dtype: str = "float32",
        device: str = "auto",
        backend: str | None = None,
    ):
        if dtype not in DTYPES:
            known = ", ".join(DTYPES)
            raise UserError(f"dtype '{dtype}' is unknown{did_you_mean(dtype, DTYPES)}, expected one of {known}")
        played = replace(named(network), dtype=dtype)
        recipe = registry.resolve(game)
        for problem in check(played, recipe.name, *registry.kind_of(game)):
            raise UserError(problem)
        chosen = library.choose_device(device)
        if threads is not None:
            library.set_threads(threads)
        self.threads = library.get_threads()
        default_lanes, default_slots = default_layout(self.threads, chosen, registry.kind_of(game)[0] is False)
        self.lanes, self.slots = lanes or default_lanes, slots or default_slots
        self.setup = {
            "game": recipe.name,
            "network": network,
            "dtype": dtype,
            "device": chosen,
            "threads": self.threads,
            "lanes": self.lanes,
            "slots": self.slots,
        }
        self._pipeline = Pipeline(
            recipe,
            [played],
            lanes=self.lanes,
            slots=self.slots,
            parent_rows=1,
            backend=backend or library.BACKENDS[chosen],
        )
        self.frame_skip = self._pipeline.frame_skip
        self._seed, self._submitted = seed, 0
        self._pipeline.start()

    def play(self, seconds: float) -> tuple[int, float]:
        """Keeps the queue filled for a while; returns the steps so far and the time, of time.perf_counter()."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            ended = self._pipeline.results(1, _WAIT_SECONDS)
            wanted = len(ended) if self._submitted else 2 * self.lanes * self.slots
            seeds = range(self._seed + self._submitted, self._seed + self._submitted + wanted)
            episodes = [Episode(Genome(seed), seed, _MAX_EPISODE_STEPS) for seed in seeds]
            if wanted:
                # Ids of episodes and genomes: two a seed.
                ids = {"first_id": 2 * self._submitted}
                skip, dimensions = self.frame_skip, self._pipeline.dimensions
                self._pipeline.submit(pack(episodes, frame_skip=skip, dimensions=dimensions, **ids))
            self._submitted += wanted
        self._pipeline.results()
        return self._pipeline.total_steps, time.perf_counter()

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.close()


def rollout(game: str, network: str, seconds: float, **options: object) -> dict[str, object]:
    """Steady rate of rollouts; options as those of Rollout.

    Returns frames_per_s, steps_per_s, idle_share (of the worker threads' time, without work), outside_us and
    outside_share (processor time a step outside environments and networks: TensorFlow's loop, the queue, Python, calls
    of the GPU; and its share of all; see outside()), resident_mb (of the whole process) and
    resident_mb_before (TensorFlow imported, nothing made yet), and what was measured.
    """
    before = resident_mb()
    with Rollout(game, network, **options) as rollouts:
        steps_before, began = rollouts.play(WARM_UP_SECONDS)
        busy, processor = library.busy_seconds(), time.process_time()
        steps, ended = rollouts.play(seconds)
        busy, processor = library.busy_seconds() - busy, time.process_time() - processor
        rate = (steps - steps_before) / (ended - began)
        return {
            "bench": "rollout",
            **rollouts.setup,
            "seconds": round(ended - began, 2),
            "frames_per_s": round(rate * rollouts.frame_skip, 1),
            "steps_per_s": round(rate, 1),
            "idle_share": round(1 - busy / (rollouts.threads * (ended - began)), 4),
            **outside(processor, busy, steps - steps_before),
            "resident_mb": resident_mb(),
            "resident_mb_before": before,
        }


def outside(processor: float, busy: float, steps: int) -> dict[str, float | None]:
    """outside_us and outside_share, from seconds of processor time and of threads at work.

    They need cores that nobody else uses, since work that waits for a core counts as going on. None where that shows:
    there would be less than no time outside.
    """
    if processor < busy:
        return {"outside_us": None, "outside_share": None}
    left = processor - busy
    return {"outside_us": round(1e6 * left / steps, 2), "outside_share": round(left / processor, 4)}


def env(name: str, envs: int, threads: int | None, seconds: float, seed: int = 0) -> dict[str, object]:
    """Rate of stepping and observing `envs` environments through the ops, with random actions.

    As in a rollout there are lanes, as many as threads, that step their part of the environments in a graph loop.
    UserError: there is no such environment, or its actions have no bounds.
    """
    from neuroevo.envs.registry import resolve

    recipe = resolve(name)
    if threads is not None:
        library.set_threads(threads)
    native, threads = load_ops(), library.get_threads()
    with tf.device("/cpu:0"):
        pool = make_env_pool(recipe, envs)
        spec = native.env_pool_spec(pool)
        none = np.zeros(0, np.int64)
        native.env_reset(pool, np.arange(envs), np.arange(envs) + seed, np.zeros(envs, np.int64), none)
    shape = tuple(spec.observation_shape.numpy().tolist())
    low, high = spec.action_low.numpy().tolist(), spec.action_high.numpy().tolist()
    if not np.isfinite([low, high]).all():
        raise UserError(
            f"an action of {recipe.name} lies between {low} and {high}, expected finite bounds to draw within"
        )
    bounds = (tuple(low), tuple(high)) if low else None
    play_lane = _playing(spec.observation_dtype.numpy().decode(), shape, int(spec.num_actions), bounds)
    lanes = [slots for slots in np.array_split(np.arange(envs), min(threads, envs)) if len(slots)]
    with tf.device("/cpu:0"):
        lanes = [tf.constant(slots) for slots in lanes]
        seeds = [tf.constant(seed + lane, tf.int64) for lane in range(len(lanes))]
        end = tf.Variable(0.0, dtype=tf.float64)  # of tf.timestamp()
    with ThreadPoolExecutor(len(lanes)) as executor:

        def play(duration: float) -> float:
            """Steps a second."""
            began = time.perf_counter()
            end.assign(time.time() + duration)
            try:
                same = [pool] * len(lanes), lanes, seeds, [end] * len(lanes)
                steps = sum(int(each) for each in executor.map(play_lane, *same))
            except BaseException:  # an interrupt, mostly: the lanes are not to play on
                end.assign(0.0)
                raise
            return steps / (time.perf_counter() - began)

        play(min(WARM_UP_SECONDS, seconds))
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


@functools.cache
def _playing(
    dtype: str, shape: tuple[int, ...], num_actions: int, bounds: tuple[tuple[float, ...], tuple[float, ...]] | None
) -> tf.types.experimental.PolymorphicFunction:
    """A graph that steps slots with random actions, resetting those whose episode is over, until the clock says `end`.

    `end` is looked at before each step. It returns how many environment steps that were. bounds: lowest and highest
    numbers of an action that is a vector; None if it is an index.
    """
    native = load_ops()

    def draw(count: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        """An action for each of so many slots."""
        if bounds is None:
            return tf.raw_ops.StatelessRandomUniformInt(shape=[count], seed=seed, minval=0, maxval=num_actions)
        low, high = (np.array(each, np.float32) for each in bounds)
        return low + (high - low) * tf.raw_ops.StatelessRandomUniform(shape=[count, num_actions], seed=seed)

    @tf.function(autograph=False)
    def run(pool: tf.Tensor, slots: tf.Tensor, seed: tf.Tensor, end: tf.Variable) -> tf.Tensor:
        none = tf.zeros([0], tf.int64)

        def step(i: tf.Tensor) -> tuple[tf.Tensor]:
            _, dones = native.env_step(pool, slots, draw(tf.size(slots), [seed, i]))
            over = tf.gather(slots, tf.where(dones)[:, 0])
            episodes = over, over + i * 2**20, tf.zeros_like(over), none
            with tf.control_dependencies([native.env_reset(pool, *episodes)]):
                observations = native.env_observation(pool, slots, dtype=dtype, shape=shape)
            with tf.control_dependencies([observations]):  # every observation is made
                return (i + 1,)

        with tf.device("/cpu:0"):  # TensorFlow would take a GPU for the little that it can compute there
            start = (tf.constant(0, tf.int64),)
            (steps,) = tf.while_loop(lambda _: tf.timestamp() < end.read_value(), step, start, parallel_iterations=1)
            return steps * tf.size(slots, tf.int64)

    return run


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in 10^6 bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6, 1)
