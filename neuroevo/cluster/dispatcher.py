"""Dispatch of the driver's episodes to the players on the machines, and collection of their results."""

from __future__ import annotations

import itertools
import logging
import pickle
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from neuroevo.cluster.actor import kill
from neuroevo.cluster.connection import reason_of
from neuroevo.cluster.machines import Machine, Machines
from neuroevo.cluster.player import PlayerFacts, Report
from neuroevo.cluster.schedule import KilledTooOften, Piece, Schedule
from neuroevo.config.schema import Cluster
from neuroevo.core.episode import Batch, Episode
from neuroevo.core.errors import EnvironmentFailure, UserError
from neuroevo.core.evaluator import Work
from neuroevo.system.console import say
from neuroevo.system.signals import deferred_signals

log = logging.getLogger("neuroevo")
_REPORT_SECONDS = 0.5  # within which a player responds, even without results; longer with many players
_DRIVER_SECONDS_A_CALL = 0.004  # report interval per player, which limits the driver's rate of calls
_NEWS_SECONDS = 10.0  # between status messages
_IDLE_AT_A_TIME = 16  # idle players that are served between two waits
_START_SECONDS = 0.05  # between polls for ready players
_Message = tuple[int, bytes, dict[int, Any], list[int]]


@dataclass(frozen=True, eq=False)
class Sent:
    """Unfinished batch.

    Attributes:
        batch: The batch, which receives the results.
        episodes: Its episodes.
        priority: Batches with a lower priority number are played first.
        where: Ray's references to the table and to the vectors of its centers.
    """

    batch: Batch
    episodes: Sequence[Episode]
    priority: int
    where: tuple[Any, Sequence[Any]]


@dataclass(eq=False)
class _Player:
    """Active machine and the state of its player."""

    machine: Machine
    messages: int = 0  # number of messages sent
    known: set[int] = field(default_factory=set)  # batches whose tables the player has
    asked: float | None = None  # time of the pending request for results; None: no request is pending
    silent: bool = False
    measured: float = field(default_factory=time.monotonic)  # time of the last results


class Dispatcher:
    """Dispatcher of batches to players.

    Args:
        cluster: The cluster's settings.
        machines: The cluster's machines.

    Attributes:
        calls: Number of completed calls of players.
    """

    def __init__(self, cluster: Cluster, machines: Machines):
        self._cluster, self._machines = cluster, machines
        self._schedule = Schedule(cluster.retries)
        self._batches: dict[int, Sent] = {}
        self._players: dict[int, _Player] = {}
        self._calls: dict[Any, int] = {}  # the player's number, by Ray's reference to its answer
        self._gone = Work()  # work of lost players
        self._reported = time.monotonic()  # time of the last status message
        self.calls = 0

    def wait_for_machines(self) -> PlayerFacts:
        """Wait until enough machines play, and return the facts of one of them.

        Raises:
            UserError: No machine can play, or some cannot and cluster.on_refusal is not "continue".
        """
        wanted = self._cluster.machines
        while len(self._players) < wanted:
            with deferred_signals():
                self._welcome()
            play, starting, failures = len(self._players), self._machines.starting, self._machines.failures()
            if failures and not starting and not play:
                raise UserError(f"no machine of the cluster can play: {failures[0]}")
            refusals = self._machines.refusals()
            if refusals and not starting and play < wanted:
                if self._cluster.on_refusal == "continue":
                    break
                raise UserError(
                    f"only {play} of {wanted} machines can play: {'; '.join(refusals)}. Fix the other machines, lower "
                    "cluster.machines, or start without them: --set cluster.on_refusal=continue"
                )
            missing = wanted - play - starting
            hint = f"; waiting for {missing} to join the cluster, or lower cluster.machines" if missing > 0 else ""
            self._tell(f"{play} of {wanted} machines play, {starting} more are starting{hint}")
            time.sleep(_START_SECONDS)
        return next(iter(self._players.values())).machine.facts

    def add(self, number: int, batch: Sent) -> None:
        """Add a batch.

        Args:
            number: Unique number of the batch.
            batch: The batch, with at least one episode.
        """
        self._batches[number] = batch
        self._schedule.add_batch(number, len(batch.episodes), batch.priority)
        self._hand_out()

    def collect(self, seconds: float) -> None:
        """Wait for responses, record the results in their batches, and dispatch more episodes.

        Args:
            seconds: Maximal time to wait.

        Raises:
            EnvironmentFailure: An environment failed, or an episode has killed the maximal number of players.
        """
        changed = self._welcome() or self._give_up_on_the_silent()
        if changed or not self._calls:
            self._hand_out()
        elif not self._schedule.pending:
            self._hand_out(itertools.islice(self._idle(), _IDLE_AT_A_TIME))
        if not self._calls:
            if not self._players:
                why = "".join(f" ({failure})" for failure in self._machines.failures()[:1])
                self._tell(f"no machine of the cluster plays; waiting for one{why}")
            time.sleep(seconds)
            return
        ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
        players, answered = len(self._players), set()
        for call in ready:
            number = self._calls.pop(call, None)  # None: an earlier response of this loop has removed the player
            if number is not None:
                answered.add(number)
                self._answer(number, call)
        self._hand_out(answered if len(self._players) == players else None)

    def _idle(self) -> Iterator[int]:
        """Return the idle players; they may get episodes of slower players."""
        return (number for number, player in self._players.items() if player.asked is None)

    def work(self) -> Work:
        """Return the work done so far, including that of lost players."""
        return sum((player.machine.work for player in self._players.values()), self._gone)

    def _welcome(self) -> bool:
        """Add the players that have become ready; return whether there were any."""
        ready = self._machines.poll()
        for machine in ready:
            self._players[machine.number] = _Player(machine)
            self._schedule.add_player(machine.number, machine.facts.slots)
        return bool(ready)

    def _hand_out(self, numbers: Iterable[int] | None = None) -> None:
        """Dispatch further episodes to the players of these numbers; None: to all players."""
        for number in list(self._players) if numbers is None else numbers:
            if number in self._players and not self._players[number].silent:
                self._hand_out_to(number, self._players[number])

    def _hand_out_to(self, number: int, player: _Player) -> None:
        actor, now = player.machine.actor, time.monotonic()
        pieces = [(piece, self._batches[piece.batch].priority) for piece in self._schedule.take(number, now)]
        if player.asked is not None and pieces:
            self._calls[actor.submit.remote(*self._message(player, pieces))] = number
        elif player.asked is None and (enough := self._schedule.enough(number)):
            player.asked, message = now, self._message(player, pieces)
            self._calls[actor.results.remote(enough, self._report_seconds, *message)] = number

    def _message(self, player: _Player, pieces: Sequence[tuple[Piece, int]]) -> _Message:
        """Return a message for PlayerActor: number, pieces with priorities, references to new tables, done batches."""
        new = {piece.batch for piece, _ in pieces} - player.known
        over = [number for number in player.known if number not in self._batches]
        player.known = (player.known | new).difference(over)
        player.messages += 1
        where = {number: self._batches[number].where for number in new}
        return player.messages - 1, pickle.dumps(pieces, protocol=5), where, over

    @property
    def _report_seconds(self) -> float:
        return max(_REPORT_SECONDS, _DRIVER_SECONDS_A_CALL * len(self._players))

    def _answer(self, number: int, call: Any) -> None:
        self.calls += 1
        try:
            report = ray.get(call)
        except RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from None  # an environment's failure, the same exception as without a cluster
            raise
        except RayError as error:  # the player or its machine has died
            self._lose(number, reason_of(error))
            return
        if report is not None:
            self._book(number, pickle.loads(report))

    def _book(self, number: int, report: Report) -> None:
        player, now = self._players[number], time.monotonic()
        player.asked, player.silent = None, False
        player.machine.work = report.work
        for whose, results in report.results:
            places = self._schedule.finish(number, whose, results.ids.tolist(), now)
            if len(places):  # otherwise other players were first
                batch = self._batches[whose].batch
                batch.book(results if len(places) == len(results) else results.at(places))
                if not batch.left:
                    del self._batches[whose]
        if report.results:
            self._schedule.measure(number, now - player.measured)
            player.measured = now

    def _lose(self, number: int, why: str) -> None:
        machine = self._players.pop(number).machine
        self._gone += machine.work
        self._calls = {call: whose for call, whose in self._calls.items() if whose != number}
        self._machines.lost(machine, why)
        try:
            self._schedule.remove_player(number)
        except KilledTooOften as killed:
            episode = self._batches[killed.batch].episodes[killed.episode]
            raise EnvironmentFailure(
                f"an episode has killed {killed.deaths} players, the last on {machine.facts.host} where it was played "
                f"alone: seed {episode.seed} of {episode.genome} ({why})"
            ) from None

    def _give_up_on_the_silent(self) -> bool:
        """Dispatch the episodes of unresponsive players to other players, too; return whether any is newly so.

        If all players are unresponsive, they are replaced: a process that was stopped or hangs would not come back.
        """
        now, patience = time.monotonic(), self._report_seconds + self._cluster.hedge
        silent = [
            (number, player)
            for number, player in self._players.items()
            if not player.silent and player.asked is not None and now - player.asked > patience
        ]
        for _, player in silent:
            player.silent = True
        if all(player.silent for player in self._players.values()):
            for number, player in list(self._players.items()):
                kill(player.machine.actor)
                self._lose(number, "no player responds")
            return bool(silent)
        for number, player in silent:
            log.warning("%s does not respond; its episodes are also played elsewhere", player.machine.facts.host)
            self._schedule.give_up_on(number)
        return bool(silent)

    def _tell(self, news: str) -> None:
        """Print a status message, at most one per _NEWS_SECONDS."""
        now = time.monotonic()
        if now - self._reported > _NEWS_SECONDS:
            self._reported = now
            say(news)
