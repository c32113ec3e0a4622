"""The evaluator of a run that plays on the machines of a Ray cluster; the outcomes are those of one machine."""

from __future__ import annotations

import atexit
import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayActorError, RayError, RayTaskError

from neuroevo.cluster.machines import Machine, Machines, join, leave, reason_of
from neuroevo.cluster.player import PlayerSettings, Report
from neuroevo.cluster.schedule import KilledTooOften, Schedule
from neuroevo.cluster.table import table_of
from neuroevo.config.schema import Cluster
from neuroevo.core.episode import Batch, Episode, Outcomes
from neuroevo.core.errors import EnvironmentFailure, UserError
from neuroevo.core.evaluator import Progress, Work
from neuroevo.core.genome import Center
from neuroevo.native.weights import NativeWeights
from neuroevo.system.console import say

log = logging.getLogger("neuroevo")
_WAIT_SECONDS = 0.05  # the longest time without a look at signals and at the progress
_REPORT_SECONDS = 0.1  # within which a player answers, with results or without; longer where there are many players
_DRIVER_SECONDS_A_CALL = 0.004  # so that the driver spends at most a part of its time on calls
_CENTERS = 8  # kept for later batches
_NEWS_SECONDS = 10.0  # between messages about what is waited for


class ClusterEvaluator:
    """Plays episodes on the machines of a Ray cluster; satisfies the Evaluator protocol.

    Args:
        cluster: How machines are found and used.
        player: What they play.
        threads: Worker threads of each machine; None: as many as it offers Ray.
        reference_batch: Observations for vbn layers; None: the network has none.

    Attributes:
        device: Where networks are evaluated, "cpu" or "gpu", the same on every machine.
        behavior_size: How many numbers are recorded of an episode.

    Raises:
        UserError: There is no cluster, or no machine can play.
    """

    def __init__(
        self,
        cluster: Cluster,
        player: PlayerSettings,
        threads: int | None = None,
        reference_batch: np.ndarray | None = None,
    ):
        self._cluster = cluster
        self._leaves = join(cluster.address or "local")
        self._closed = False
        atexit.register(self.close)
        self._batches: dict[int, _Sent] = {}
        self._centers: dict[str, Any] = {}  # Ray's references to the last few, by name
        self._over: list[int] = []  # batches that players may forget
        self._told: dict[int, int] = {}  # by player: how many of those it has been told
        self._players: dict[int, _PlayerState] = {}
        self._calls: dict[Any, int] = {}  # the player's number, by Ray's reference to its answer
        self._done = Work(0, 0.0, 0)  # of players that are gone
        self._schedule = Schedule(cluster.retries)
        self._next_batch = 0
        with self._closed_on_failure():
            reference = None if reference_batch is None else ray.put(reference_batch)
            self._machines = Machines(player, reference, threads, cluster.head_plays)
            facts = self._wait_for_machines().machine.facts
        self.device, self.frame_skip, self.num_actions = facts.device, facts.frame_skip, facts.num_actions
        self.observation_size, self.behavior_size = facts.observation_size, facts.behavior_size
        self._behavior_dtype = np.dtype(facts.behavior_dtype)
        self.weights = NativeWeights(facts.network_texts)
        self.dimension = max(self.weights.dimensions)

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Plays all episodes and returns their outcomes in order: submit() and wait()."""
        return self.wait(self.submit(episodes), on_progress)

    def submit(self, episodes: Sequence[Episode], priority: int = 0) -> Batch:
        """Sends the episodes and returns at once. Those of a lower priority number are played first.

        Raises what an environment raised on one of the machines, and KeyboardInterrupt; both leave it closed.
        """
        batch = Batch(len(episodes))
        if self.behavior_size:
            batch.behaviors = np.zeros((len(episodes), self.behavior_size), self._behavior_dtype)
        if not episodes:
            return batch
        with self._closed_on_failure():
            self._require_open()
            bases = (episode.genome.base for episode in episodes)
            centers = {base.name: base for base in bases if isinstance(base, Center)}
            table = table_of(episodes)
            where = ray.put(table), [self._reference(centers[name]) for name in table.centers]
            number, self._next_batch = self._next_batch, self._next_batch + 1
            self._batches[number] = _Sent(batch, priority, where, episodes)
            self._schedule.add_batch(number, len(episodes), priority)
            self._hand_out()
        return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = math.inf) -> Outcomes:
        """The outcomes of a batch, in the order of its episodes: when all are over, or what there is after `seconds`.

        Raises as submit() does.
        """
        end = time.perf_counter() + seconds
        with self._closed_on_failure():
            while batch.left and time.perf_counter() < end:
                self._require_open()
                self._book(_WAIT_SECONDS)
                if on_progress is not None:
                    on_progress(batch.over, int(batch.steps.sum()))
        return batch.outcomes

    def work(self) -> Work:
        """What has been done so far, by players that are gone, too."""
        machines = [state.machine for state in self._players.values()]
        return Work(
            self._done.steps + sum(machine.steps for machine in machines),
            self._done.busy_seconds + sum(machine.busy_seconds for machine in machines),
            max(1, sum(machine.facts.threads for machine in machines)),
        )

    def close(self) -> None:
        """Ends the players and leaves the cluster. May be called more than once."""
        atexit.unregister(self.close)
        if self._closed:
            return
        self._closed = True
        if hasattr(self, "_machines"):
            self._machines.close()
        self._calls, self._players, self._batches = {}, {}, {}
        if self._leaves:
            leave()

    def __enter__(self) -> ClusterEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reference(self, center: Center) -> Any:
        """Ray's reference to a center's vector, which is sent once even if several batches need it."""
        reference = self._centers.pop(center.name, None) or ray.put(center.vector)
        self._centers[center.name] = reference  # now the last
        while len(self._centers) > _CENTERS:
            del self._centers[next(iter(self._centers))]
        return reference

    def _wait_for_machines(self) -> _PlayerState:
        """Waits until enough machines play, and returns one of them."""
        told = time.monotonic()
        while len(self._players) < self._cluster.machines:
            self._welcome()
            failures = self._machines.failures()
            if failures and not self._machines.starting and not self._players:
                raise UserError(f"no machine of the cluster can play: {failures[0]}")
            if time.monotonic() - told > _NEWS_SECONDS:
                told = time.monotonic()
                more = self._machines.starting
                say(f"{len(self._players)} of {self._cluster.machines} machines play, {more} more are starting")
            time.sleep(_WAIT_SECONDS)
        return next(iter(self._players.values()))

    def _welcome(self) -> None:
        """Lets players that have become ready take part."""
        for machine in self._machines.poll():
            self._players[machine.number] = _PlayerState(machine)
            self._told[machine.number] = len(self._over)
            self._schedule.add_player(machine.number, machine.facts.slots)

    def _hand_out(self) -> None:
        for number in list(self._players):
            self._hand_out_to(number)

    def _hand_out_to(self, number: int) -> None:
        state = self._players[number]
        if state.silent:
            return
        actor = state.machine.actor
        pieces = [
            (piece, self._batches[piece.batch].priority, self._batches[piece.batch].where)
            for piece in self._schedule.take(number)
        ]
        over, self._told[number] = self._over[self._told[number] :], len(self._over)
        if state.asked is not None:
            if pieces:
                self._calls[actor.submit.remote(pieces, over)] = number
        elif held := self._schedule.held(number):
            # Half of what it has ahead may run out before it gets more; where nothing is pending, all.
            at_least = max(1, self._schedule.ahead(number) // 2) if self._schedule.pending else held
            state.asked = time.monotonic()
            self._calls[actor.results.remote(at_least, self._report_seconds, pieces, over)] = number

    @property
    def _report_seconds(self) -> float:
        return max(_REPORT_SECONDS, _DRIVER_SECONDS_A_CALL * len(self._players))

    def _book(self, seconds: float) -> None:
        """Waits for a player's answer or a short time, books what has ended, and hands out more."""
        self._welcome()
        self._give_up_on_the_silent()
        if not self._calls:
            self._hand_out()
            time.sleep(0 if self._calls else seconds)
            return
        ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
        for call in ready:
            number = self._calls.pop(call, None)  # None: of a player that an answer before this one has lost
            if number is not None:
                self._answer(number, call)
        self._hand_out()

    def _answer(self, number: int, call: Any) -> None:
        state = self._players[number]
        try:
            report = ray.get(call)
        except RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from None  # an environment's failure, as it would have been raised here
            raise
        except RayActorError as error:
            self._lose(number, reason_of(error))
            return
        except RayError as error:  # such as a table that was lost with its machine
            self._lose(number, reason_of(error))
            return
        if report is None:
            return
        now = time.monotonic()
        state.asked, state.silent = None, False
        self._take_results(state, report, now)

    def _take_results(self, state: _PlayerState, report: Report, now: float) -> None:
        machine = state.machine
        machine.steps, machine.busy_seconds = report.steps, report.busy_seconds
        for number, results in report.results:
            new = self._schedule.finish(machine.number, number, results.ids.tolist())
            sent = self._batches.get(number)
            if sent is None:
                continue
            sent.batch.book(results if len(new) == len(results) else results.at(new))
            if not sent.batch.left:
                del self._batches[number]
                self._over.append(number)
        if report.results:
            self._schedule.measure(machine.number, now - state.measured)
            state.measured = now

    def _lose(self, number: int, why: str) -> None:
        state = self._players.pop(number)
        machine = state.machine
        self._done = Work(self._done.steps + machine.steps, self._done.busy_seconds + machine.busy_seconds, 0)
        self._calls = {call: whose for call, whose in self._calls.items() if whose != number}
        self._machines.lost(machine, why)
        try:
            self._schedule.remove_player(number)
        except KilledTooOften as killed:
            episode = self._batches[killed.batch].episodes[killed.episode]
            raise EnvironmentFailure(
                f"an episode has cost {killed.deaths} players, the last on {machine.facts.host} where it was played "
                f"alone: seed {episode.seed} of {episode.genome} ({why})"
            ) from None

    def _give_up_on_the_silent(self) -> None:
        now, patience = time.monotonic(), self._report_seconds + self._cluster.hedge
        for number, state in self._players.items():
            if state.asked is not None and now - state.asked > patience and not state.silent:
                state.silent = True
                log.warning("%s does not answer; its episodes are played elsewhere, too", state.machine.facts.host)
                self._schedule.give_up_on(number)

    def _require_open(self) -> None:
        if self._closed:
            raise RuntimeError("the evaluator is closed: it plays nothing after close() or a failure")

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise


@dataclass(eq=False)
class _Sent:
    """A batch, and Ray's references to its table and its centers."""

    batch: Batch
    priority: int
    where: tuple[Any, Sequence[Any]]
    episodes: Sequence[Episode]


@dataclass(eq=False)
class _PlayerState:
    """A machine that takes part, and when it was last asked for results."""

    machine: Machine
    asked: float | None = None  # None: it is not asked at present
    silent: bool = False
    measured: float = 0.0  # when its last results came

    def __post_init__(self) -> None:
        self.measured = time.monotonic()
