"""Benchmark of the throughput of complete rollouts: `bench rollout`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Genome, Kind, LowRank
from neuroevo.core.problems import did_you_mean
from neuroevo.envs import registry
from neuroevo.native import library
from neuroevo.networks.network import DTYPES, named
from neuroevo.rollout.engines import chosen_engine
from neuroevo.rollout.evaluator import LocalEvaluator

_MAX_EPISODE_STEPS = 5000  # as in training, since some random networks never start a game
WARM_UP_SECONDS = 2.0
_WAIT_SECONDS = 0.05  # longest wait for episodes to end, as in the evaluator
_SIGMA = 0.02  # scale of low-rank noise, the default of evolution strategies
GENOMES = ("random", "low_rank", "same")


class Rollout:
    """Rollout pipeline with a permanently filled queue; by default, every episode plays a different random network.

    Args:
        game: Name of the environment.
        network: Name of the network.
        threads: Worker threads; None for one per core.
        lanes: Number of lanes; None to choose it for the threads and the device.
        slots: Slots per lane; None to choose it for the threads and the device.
        seed: Seed of genomes and episodes.
        dtype: Arithmetic of the networks, "float32" or "int8".
        device: Where networks are evaluated: "auto", "cpu" or "gpu".
        backend: The population's backend; None for the device's default.
        engine: Engine that runs the lanes: "auto", "native" or "tensorflow".
        genomes: Genomes to play: "random", a freshly initialized network in each episode; "low_rank", a center with
            different low-rank noise in each episode; or "same", the same network in all episodes.
        rank: Rank of the noise of "low_rank".
        env_options: Options of the environment.

    Attributes:
        setup: The setup as a mapping of game, network, dtype, genomes, device, engine, threads, lanes and slots.
        threads: Worker threads.
        lanes: Number of lanes.
        slots: Slots per lane.
        frame_skip: Emulator frames per step.

    Raises:
        UserError: An argument is unknown or not supported on this machine.
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
        engine: str = "auto",
        genomes: str = "random",
        rank: int = 1,
        env_options: Mapping[str, object] | None = None,
    ):
        for what, value, known in (("dtype", dtype, DTYPES), ("genomes", genomes, GENOMES)):
            if value not in known:
                expected = f"expected one of {', '.join(known)}"
                raise UserError(f"{what} '{value}' is unknown{did_you_mean(value, known)}, {expected}")
        environment = registry.find(game, env_options)
        self._kind: Kind = LowRank(rank) if genomes == "low_rank" else GAUSSIAN
        self._evaluator = LocalEvaluator(
            environment,
            replace(named(network), dtype=dtype),
            threads=threads,
            lanes=lanes,
            slots=slots,
            parent_rows=1,
            device=device,
            backend=backend,
            engine=engine,
            kind=self._kind,
            share_plays=False,
        )
        own = self._evaluator
        self.threads, self.lanes, self.slots, self.frame_skip = own.threads, own.lanes, own.slots, own.frame_skip
        self.setup = {
            "game": environment.name,
            "network": network,
            "dtype": dtype,
            "genomes": genomes,
            "device": own.device,
            "engine": chosen_engine(engine),
            "threads": self.threads,
            "lanes": self.lanes,
            "slots": self.slots,
        }
        self._genomes, self._center = genomes, Genome(seed)
        self._next_seed, self._left = seed, 0

    def play(self, seconds: float) -> tuple[int, float]:
        """Run the pipeline with a filled queue.

        Args:
            seconds: Duration in wall-clock seconds.

        Returns:
            The number of steps since the lanes started, and the current time.perf_counter().
        """
        end, piece = time.perf_counter() + seconds, self.lanes * self.slots
        while time.perf_counter() < end:
            while self._left < 2 * piece:
                seeds = range(self._next_seed, self._next_seed + piece)
                episodes = [Episode(self._genome(seed), seed, _MAX_EPISODE_STEPS) for seed in seeds]
                self._evaluator.submit(episodes, parents=[] if self._genomes == "random" else [self._center])
                self._next_seed, self._left = self._next_seed + piece, self._left + piece
            self._left -= sum(len(results) for _, results in self._evaluator.results(1, _WAIT_SECONDS))
        self._evaluator.results(0, 0)
        return self._evaluator.work().steps, time.perf_counter()

    def _genome(self, seed: int) -> Genome:
        """Return the genome that plays the episode with this seed."""
        if self._genomes == "random":
            return Genome(seed)
        return self._center if self._genomes == "same" else self._center.child(seed, _SIGMA, self._kind)

    def __enter__(self) -> Rollout:
        return self

    def __exit__(self, *_: object) -> None:
        self._evaluator.close()


def rollout(game: str, network: str, seconds: float, **options: Any) -> dict[str, Any]:
    """Measure the steady-state throughput of rollouts, after a warm-up.

    Args:
        game: Name of the environment.
        network: Name of the network.
        seconds: Duration of the measurement in wall-clock seconds.
        **options: As for Rollout.

    Returns:
        The setup (bench, game, network, dtype, genomes, device, engine, threads, lanes, slots, seconds), and

        - frames_per_s, steps_per_s: The throughput.
        - idle_share: Share of the worker threads' time without work.
        - outside_us: Processor time per step outside environments and networks (the lanes' loop, the queue, Python,
          GPU calls), in microseconds; None if it cannot be measured, see outside().
        - outside_share: The same as a share of all processor time; None if it cannot be measured.
        - resident_mb: Memory of the process at the end, in 10^6 bytes.
        - resident_mb_before: Memory before the pipeline is created, including TensorFlow, in 10^6 bytes.

    Raises:
        UserError: The game, the network or an option is unknown or not supported on this machine.
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
    """Compute the processor time spent outside environments and networks.

    The result is valid only if no other program uses the cores, since a thread that waits for a core counts as busy.

    Args:
        processor: Processor time of the process, in seconds.
        busy: Time that the worker threads were busy, in seconds, summed over the threads.
        steps: Number of steps taken in that time.

    Returns:
        outside_us, in microseconds per step, and outside_share, the share of all processor time. Both are None if the
        threads' busy time exceeds the processor time, which implies that other programs used the cores.
    """
    if processor < busy:
        return {"outside_us": None, "outside_share": None}
    left = processor - busy
    return {"outside_us": round(1e6 * left / steps, 2), "outside_share": round(left / processor, 4)}


def resident_mb() -> float:
    """Return the resident memory of this process, in 10^6 bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6, 1)
