"""Measure the rates of whole rollouts and of environments alone on this machine: `bench rollout` and `bench env`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import tensorflow as tf

from neuroevo.benchmarks.random_play import random_play
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, did_you_mean
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.networks.architectures import DTYPES, check, named
from neuroevo.rollout.evaluator import default_layout
from neuroevo.rollout.pipeline import Pipeline, make_env_pool
from neuroevo.rollout.tf_ops import load_ops

if TYPE_CHECKING:
    from typing_extensions import Unpack

_MAX_EPISODE_STEPS = 5000  # as in training: some random networks never start a game
WARM_UP_SECONDS = 2.0
_WAIT_SECONDS = 0.05  # how long to wait for episodes to end, as the evaluator does


class RolloutOptions(TypedDict, total=False):
    """Options of a Rollout; those left out are chosen for the machine or have a default.

    Attributes:
        threads: Worker threads; by default one per core.
        lanes: Number of lanes; by default chosen for the threads and the device.
        slots: Slots per lane; by default chosen for the threads and the device.
        seed: Seed of genomes and episodes; 0 by default.
        dtype: Arithmetic of the networks, "float32" (the default) or "int8".
        device: Where networks are evaluated: "auto" (the default), "cpu" or "gpu".
        backend: The population's backend; None for that of the device.
    """

    threads: int | None
    lanes: int | None
    slots: int | None
    seed: int
    dtype: str
    device: str
    backend: str | None


class Rollout:
    """A pipeline that plays freshly initialized genomes, a different one in every episode, and is always busy.

    Args:
        game: Name of the environment.
        network: Name of the network.
        threads: Worker threads; None for one per core.
        lanes: Number of lanes; None chooses it for the threads and the device.
        slots: Slots per lane; None chooses it likewise.
        seed: Seed of genomes and episodes.
        dtype: Arithmetic of the networks, "float32" or "int8".
        device: Where networks are evaluated: "auto", "cpu" or "gpu".
        backend: The population's backend; None for that of the device.

    Attributes:
        setup: What is played and how: game, network, dtype, device, threads, lanes and slots.
        threads: Worker threads.
        lanes: Number of lanes.
        slots: Slots per lane.
        frame_skip: Emulator frames per step.

    Raises:
        UserError: One of the arguments is unknown or cannot be used here.
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
        environment = registry.find(game)
        images, continuous = environment.image_observations, environment.continuous_actions
        for problem in check(played, environment.name, images, continuous):
            raise ConfigError([problem])
        chosen = library.choose_device(device)
        if threads is not None:
            library.set_threads(threads)
        self.threads = library.get_threads()
        default_lanes, default_slots = default_layout(self.threads, chosen, images is False)
        self.lanes, self.slots = lanes or default_lanes, slots or default_slots
        self.setup = {
            "game": environment.name,
            "network": network,
            "dtype": dtype,
            "device": chosen,
            "threads": self.threads,
            "lanes": self.lanes,
            "slots": self.slots,
        }
        self._pipeline = Pipeline(
            environment.spec,
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
        """Keeps the queue filled for a while.

        Args:
            seconds: Wall time to play.

        Returns:
            The steps taken since the pipeline started, and the time now, of time.perf_counter().
        """
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            ended, _, _ = self._pipeline.results(1, _WAIT_SECONDS)
            wanted = len(ended) if self._submitted else 2 * self.lanes * self.slots
            ids = range(self._submitted, self._submitted + wanted)
            self._submitted += wanted
            if wanted:
                self._pipeline.submit(
                    episode_ids=ids,
                    episode_genomes=range(wanted),
                    episode_seeds=[self._seed + i for i in ids],
                    episode_max_frames=[_MAX_EPISODE_STEPS * self.frame_skip] * wanted,
                    genome_ids=ids,
                    genome_networks=[0] * wanted,
                    genome_sources=[-1] * wanted,
                    genome_seeds=[self._seed + i for i in ids],
                    chains=[()] * wanted,
                )
        self._pipeline.results()
        return self._pipeline.total_steps, time.perf_counter()

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.close()


def rollout(game: str, network: str, seconds: float, **options: Unpack[RolloutOptions]) -> dict[str, Any]:
    """Measures the steady rate of rollouts, after a warm-up.

    Args:
        game: Name of the environment.
        network: Name of the network.
        seconds: Wall time to measure.
        **options: As in RolloutOptions.

    Returns:
        What was measured (bench, game, network, dtype, device, threads, lanes, slots, seconds), and

        - frames_per_s, steps_per_s: The rates.
        - idle_share: The share of the worker threads' time without work.
        - outside_us: Processor time per step outside environments and networks (TensorFlow's loop, the queue, Python,
          GPU calls), in microseconds; None where it cannot be measured, see outside().
        - outside_share: Its share of all processor time; None likewise.
        - resident_mb: Memory of the process at the end, in 10^6 bytes.
        - resident_mb_before: The same with TensorFlow imported and nothing else made yet.

    Raises:
        UserError: The game, the network or an option is unknown or cannot be used here.
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
    """Computes the processor time that is spent outside environments and networks.

    The result is right only if no other program uses the cores: a thread that waits for a core counts as busy.

    Args:
        processor: Processor time of the process, in seconds.
        busy: Time that the worker threads were busy, in seconds, summed over the threads.
        steps: Steps taken in that time.

    Returns:
        outside_us, microseconds per step, and outside_share, the share of all processor time. Both are None where
        the threads were busy for longer than the processor time, so that other programs must have used the cores.
    """
    if processor < busy:
        return {"outside_us": None, "outside_share": None}
    left = processor - busy
    return {"outside_us": round(1e6 * left / steps, 2), "outside_share": round(left / processor, 4)}


def env(name: str, envs: int, threads: int | None, seconds: float, seed: int = 0) -> dict[str, Any]:
    """Measures how fast the ops step and observe environments with random actions.

    As in a rollout, lanes step their part of the environments in graph loops; there are at most as many as threads.

    Args:
        name: Name of the environment.
        envs: Number of environments that are stepped at once.
        threads: Worker threads; None for one per core.
        seconds: Wall time to measure, after a warm-up.
        seed: Seed of episodes and actions.

    Returns:
        What was measured (bench, env, envs, threads, seconds), frames_per_s and steps_per_s, and resident_mb: the
        memory of the process at the end, in 10^6 bytes.

    Raises:
        UserError: There is no such environment, or its actions have no finite bounds to draw within.
    """
    made_of = registry.resolve(name)
    if threads is not None:
        library.set_threads(threads)
    native, threads = load_ops(), library.get_threads()
    with tf.device("/cpu:0"):
        pool = make_env_pool(made_of, envs)
        spec = native.env_pool_spec(pool)
        none = np.zeros(0, np.int64)
        native.env_reset(pool, np.arange(envs), np.arange(envs) + seed, np.zeros(envs, np.int64), none, none)
    shape = tuple(spec.observation_shape.numpy().tolist())
    low, high = spec.action_low.numpy().tolist(), spec.action_high.numpy().tolist()
    if not np.isfinite([low, high]).all():
        raise UserError(
            f"an action of {made_of.name} lies between {low} and {high}, expected finite bounds to draw within"
        )
    bounds = (tuple(low), tuple(high)) if low else None
    play_lane = random_play(spec.observation_dtype.numpy().decode(), shape, int(spec.num_actions), bounds)
    lanes = [slots for slots in np.array_split(np.arange(envs), min(threads, envs)) if len(slots)]
    with tf.device("/cpu:0"):
        lanes = [tf.constant(slots) for slots in lanes]
        seeds = [tf.constant(seed + lane, tf.int64) for lane in range(len(lanes))]
        end = tf.Variable(0.0, dtype=tf.float64)  # compared with tf.timestamp()
    with ThreadPoolExecutor(len(lanes)) as executor:

        def play(duration: float) -> float:
            """Steps all lanes for `duration` seconds and returns the steps per second."""
            began = time.perf_counter()
            end.assign(time.time() + duration)
            try:
                same = [pool] * len(lanes), lanes, seeds, [end] * len(lanes)
                steps = sum(int(each) for each in executor.map(play_lane, *same))
            except BaseException:  # mostly an interrupt, which has to end the lanes
                end.assign(0.0)
                raise
            return steps / (time.perf_counter() - began)

        play(min(WARM_UP_SECONDS, seconds))
        rate = play(seconds)
    return {
        "bench": "env",
        "env": made_of.name,
        "envs": envs,
        "threads": threads,
        "seconds": seconds,
        "frames_per_s": round(rate * int(spec.frame_skip), 1),
        "steps_per_s": round(rate, 1),
        "resident_mb": resident_mb(),
    }


def resident_mb() -> float:
    """Returns the resident memory of this process, in 10^6 bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6, 1)
