"""Evaluator for simulators that run on the accelerator: one compiled program runs networks and simulators.

Batches are played one after another, so that an episode's lane, on which the last bits of some simulators depend,
follows from its batch alone. Earlier batches that no caller waits for, those of elites' test episodes, are played
together once they fill the lanes several times over.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from neuroevo.accelerated.lanes import Lanes, Look
from neuroevo.accelerated.networks import policy
from neuroevo.accelerated.program_state import NO_EPISODE, Stock
from neuroevo.accelerated.simulator import Simulator
from neuroevo.accelerated.weights import GenomeRows
from neuroevo.core.closing import Closing
from neuroevo.core.episode import Batch, Episode, EpisodeResults, OnResults, Outcomes
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Progress, Work
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.layers import is_recurrent
from neuroevo.networks.network import Network

_FAILED = "the simulation gave numbers that are not finite"
_WORTH_PLAYING = 4  # earlier batches are played when they have at least this many episodes per lane


class AcceleratedEvaluator(Closing):
    """Evaluator on JAX's devices; satisfies the Evaluator protocol.

    Attributes:
        device: JAX's name of the platform, such as "cpu" or "gpu".
        dimension: Number of weights, D.
        num_actions: Number of values of an action.
        lanes: Number of episodes played in parallel.
        lane_steps: Steps of all lanes so far, including those of idle lanes.
        useful_share: Share of these steps in which the lane had an episode, in [0, 1].
    """

    frame_skip = 1

    def __init__(
        self,
        simulator: Simulator,
        network: Network,
        *,
        max_episode_steps: int,
        lanes: int,
        devices: int | None = None,
        steps: int = 64,
    ):
        """Make the programs, which are compiled when the first episodes are played.

        Args:
            simulator: The environment.
            network: The policy network.
            max_episode_steps: Maximal length of an episode in steps.
            lanes: Number of episodes played in parallel.
            devices: Number of JAX devices to use; None: all.
            steps: Steps per call of the program, between checks of signals and progress.

        Raises:
            UserError: JAX has fewer devices, `lanes` is not a multiple of their number, or the network is recurrent.
        """
        there = jax.devices()
        if devices is not None and not 1 <= devices <= len(there):
            raise UserError(f"devices is {devices}, expected a number in [1, {len(there)}], JAX's devices")
        used = there[:devices]
        if lanes < 2 * len(used) or lanes % len(used):  # XLA compiles a single lane differently: other rounding
            raise UserError(f"lanes is {lanes}, expected a multiple of the {len(used)} devices, at least 2 for each")
        self.device, self.lanes, self.observation_size = used[0].platform, lanes, simulator.observation_size
        self.num_actions = simulator.action_size
        layers = network.vector_text(self.observation_size, self.num_actions)
        if is_recurrent(layers):
            raise UserError("lstm layers are not supported with a simulator on the accelerator")
        self.network_texts = [layers]
        self.weights = NativeWeights(self.network_texts)
        self.dimension = self.weights.dimension(0)
        self._rows = GenomeRows(self.weights)
        self._programs = Lanes(
            simulator,
            policy(layers, network.action_bins),
            self.dimension,
            lanes=lanes,
            devices=used,
            steps=steps,
            normalized=network.normalize_observations,
        )
        self._max_episode_steps = max_episode_steps
        self._queue: deque[_Queued] = deque()
        self._group: _Group | None = None
        self._steps = self.lane_steps = 0
        self._busy, self._began = 0.0, time.perf_counter()

    @property
    def useful_share(self) -> float:
        """Share of lane steps with an episode, in [0, 1]; 1 before the first step."""
        return self._steps / self.lane_steps if self.lane_steps else 1.0

    def submit(
        self,
        episodes: Sequence[Episode],
        priority: int = 0,  # noqa: ARG002
        on_results: OnResults | None = None,
    ) -> Batch:
        """Queue episodes; see the Evaluator protocol. The batch passed to wait() goes first; `priority` is ignored."""
        batch = Batch(len(episodes), on_results=on_results)
        if episodes:
            self._queue.append(_Queued(batch, list(episodes)))
        return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = math.inf) -> Outcomes:
        """Return the outcomes of a batch; see the Evaluator protocol."""
        end = time.perf_counter() + seconds
        while batch.left and time.perf_counter() < end:
            self.advance(batch)
            if on_progress is not None:
                on_progress(batch.over, int(batch.steps.sum()))
        return batch.outcomes

    def advance(self, batch: Batch) -> None:
        """Play at most `steps` steps of the group that contains an unfinished batch, or of the current group."""
        with self._closed_on_failure():
            if self._group is None:
                self._group = self._next_group(batch)
            if self._advance(self._group):
                self._group = None

    def look(self, what: Callable[[Any], Any]) -> Look:
        """Return part of the states of the lanes and of the newest stock; see Lanes.look()."""
        return self._programs.look(what)

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Play episodes and return their outcomes: submit(), then wait()."""
        return self.wait(self.submit(episodes), on_progress)

    def work(self) -> Work:
        """Return the work done; each device counts as a thread, busy in proportion to its lanes with an episode."""
        devices = self._programs.devices
        return Work(self._steps, self._busy * devices, (time.perf_counter() - self._began) * devices)

    def close(self) -> None:
        """Drop the queued episodes."""
        self._queue.clear()
        self._group = None

    def _next_group(self, wanted: Batch) -> _Group:
        """Return the batches before the wanted batch if they fill the lanes, otherwise that batch and later ones."""
        place = next(place for place, queued in enumerate(self._queue) if queued.batch is wanted)
        earlier = [self._queue[index] for index in range(place)]
        if sum(len(queued.episodes) for queued in earlier) >= _WORTH_PLAYING * self.lanes:
            chosen = earlier
        else:
            chosen = [self._queue[index] for index in range(place, len(self._queue))]
        for queued in chosen:
            self._queue.remove(queued)
        return _Group(chosen, self._programs.devices)

    def _advance(self, group: _Group) -> bool:
        """Play a group for some steps and return whether it is finished."""
        begun = time.perf_counter()
        programs = self._programs
        renew = (programs.in_stock == 0) & group.more
        if renew.any():
            self._stock_up(group, renew)
        played = programs.run(group.more)
        share = played.lane_steps / max(played.all_lane_steps, 1)
        self._busy += share * (time.perf_counter() - begun)
        self._steps += played.lane_steps
        self.lane_steps += played.all_lane_steps
        group.book(played.episode, played.steps, played.returns, played.sums, played.failed)
        return not group.left

    def _stock_up(self, group: _Group, renew: np.ndarray) -> None:
        programs = self._programs
        stock = programs.stock // programs.devices
        taken = [group.take(device, stock) if renew[device] else [] for device in range(programs.devices)]
        table = np.full((programs.devices, stock), NO_EPISODE, np.int32)
        for device, own in enumerate(taken):
            table[device, : len(own)] = own
        numbers = table.reshape(-1)
        episodes = [None if number == NO_EPISODE else group.episodes[number] for number in numbers]
        keys = np.array([(0, 0) if each is None else divmod(each.seed, 1 << 32) for each in episodes], np.uint32)
        limits = np.array([0 if each is None else self._limit(each) for each in episodes], np.int32)
        thetas = self._rows.rows([None if each is None else each.genome for each in episodes])
        mean, std = self._views(episodes)
        programs.stock_up(renew, keys, Stock(thetas, numbers, limits, mean, std))

    def _limit(self, episode: Episode) -> int:
        return min(episode.max_steps or self._max_episode_steps, self._max_episode_steps)

    def _views(self, episodes: Sequence[Episode | None]) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and standard deviations that normalize observations, float32 [F, n] each, or [F, 0]."""
        if not self._programs.normalized:
            return (np.zeros((len(episodes), 0), np.float32),) * 2
        mean = np.zeros((len(episodes), self.observation_size), np.float32)
        std = np.ones_like(mean)
        for index, episode in enumerate(episodes):
            if episode is not None and episode.normalizer is not None:
                mean[index], std[index] = episode.normalizer.mean, episode.normalizer.std
        return mean, std


@dataclass(frozen=True)
class _Queued:
    """Batch and its episodes."""

    batch: Batch
    episodes: list[Episode]


@dataclass
class _Group:
    """Batches that are played together; device k of K plays episodes k, k + K, k + 2K, ..."""

    queued: list[_Queued]
    devices: int
    episodes: list[Episode] = field(init=False)

    def __post_init__(self) -> None:
        self.episodes = [episode for queued in self.queued for episode in queued.episodes]
        self._next = list(range(self.devices))
        self._firsts = np.cumsum([0, *(len(queued.episodes) for queued in self.queued)])

    @property
    def more(self) -> np.ndarray:
        """Whether each device has episodes that were not taken yet, bool [devices]."""
        return np.array([number < len(self.episodes) for number in self._next])

    @property
    def left(self) -> int:
        """Number of unfinished episodes."""
        return sum(queued.batch.left for queued in self.queued)

    def take(self, device: int, most: int) -> list[int]:
        """Return the numbers of a device's next episodes, at most `most`."""
        first = self._next[device]
        own = list(range(first, len(self.episodes), self.devices))[:most]
        self._next[device] = first + len(own) * self.devices
        return own

    def book(
        self, numbers: np.ndarray, steps: np.ndarray, returns: np.ndarray, sums: np.ndarray, failed: np.ndarray
    ) -> None:
        """Record finished episodes in their batches."""
        if not len(numbers):
            return
        counts = steps[:, None].astype(np.float64) if sums.shape[1] else np.zeros((len(numbers), 0))
        results = EpisodeResults(
            numbers,
            returns,
            steps,
            [_FAILED if each else "" for each in failed],
            np.concatenate([counts, sums], axis=1),
            np.zeros((len(numbers), 0)),
        )
        for queued, first in zip(self.queued, self._firsts, strict=False):
            queued.batch.book(results.of(int(first), len(queued.episodes)))
