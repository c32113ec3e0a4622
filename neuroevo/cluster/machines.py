"""Machines of a Ray cluster, with a player on each machine that is alive.

Lost and new machines are handled alike: each live machine without a player gets one. If a player raises an error when
it starts, the machine is retried with exponential backoff.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayActorError, RayError

from neuroevo.cluster.actor import kill, make_player
from neuroevo.cluster.connection import Node, ask_for_nodes, is_head, reason_of
from neuroevo.cluster.player import PlayerFacts, PlayerSettings
from neuroevo.core.errors import EnvironmentFailure
from neuroevo.core.evaluator import Work

log = logging.getLogger("neuroevo")
_POLL_SECONDS = 2.0  # between queries of the live machines
_FIRST_BACK_OFF, _LAST_BACK_OFF = 2.0, 120.0  # seconds


@dataclass(eq=False)
class Machine:
    """Machine with an active player.

    Attributes:
        number: Unique number of the player.
        node: Ray's identifier of the machine.
        actor: Ray's handle of the player.
        facts: The player's facts.
        work: Work that the player has done, as of its last report.
    """

    number: int
    node: str
    actor: Any
    facts: PlayerFacts
    work: Work = Work()


@dataclass
class _Waiting:
    """Machine without a player: the time of the next attempt and the last failure."""

    at: float = 0.0
    back_off: float = _FIRST_BACK_OFF
    failure: str = ""
    died: bool = False  # its process was killed from outside, so the next attempt may succeed


@dataclass(eq=False)
class _Starting:
    node: str
    actor: Any
    ready: Any  # Ray's reference to the facts


class Machines:
    """Players on the machines of the cluster that this process has joined.

    Args:
        settings: The players' settings.
        reference_batch: Observations for vbn layers and safe mutations; None: the run needs no reference batch.
        threads: Worker threads of each player; None: the number of CPUs that the machine offers Ray.
        head_plays: Whether the cluster's head also gets a player.
    """

    def __init__(
        self,
        settings: PlayerSettings,
        reference_batch: np.ndarray | None = None,
        threads: int | None = None,
        head_plays: bool = True,
    ):
        self.settings, self.reference_batch = settings, reference_batch
        self._threads, self._head_plays = threads, head_plays
        self._playing: dict[str, Machine] = {}  # by node
        self._starting: dict[str, _Starting] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._polled = -_POLL_SECONDS
        self._asked: Future[list[Node]] | None = None
        self._number = 0
        self._device: str | None = None  # the same for all players: float32 outcomes differ between CPU and GPU

    def poll(self) -> list[Machine]:
        """Start missing players, and return the machines whose players have become ready since the last call."""
        now = time.monotonic()
        if self._asked is None and now - self._polled >= _POLL_SECONDS:
            self._asked, self._polled = ask_for_nodes(), now
        if self._asked is not None and self._asked.done():
            known, self._asked = self._asked.result(), None
            self._require_own(known)
            for node in self._able(known):
                self._start(node, now)
        return [machine for each in list(self._starting.values()) if (machine := self._ready(each)) is not None]

    def lost(self, machine: Machine, why: str) -> None:
        """Drop a player that has died or does not respond; its machine gets a new player if it is alive."""
        log.warning("lost the player on %s: %s", machine.facts.host, why)
        self._playing.pop(machine.node, None)
        self._waiting[machine.node] = _Waiting()
        self._polled = -_POLL_SECONDS
        kill(machine.actor)

    def failures(self) -> list[str]:
        """Return why players could not start, for each machine without a player."""
        return [waiting.failure for waiting in self._waiting.values() if waiting.failure]

    def refusals(self) -> list[str]:
        """Return the failures that have to be fixed before another attempt can succeed."""
        return [waiting.failure for waiting in self._waiting.values() if waiting.failure and not waiting.died]

    @property
    def starting(self) -> int:
        """Number of players that are starting."""
        return len(self._starting)

    def close(self) -> None:
        """Terminate all players."""
        for actor in [each.actor for each in self._playing.values()] + [each.actor for each in self._starting.values()]:
            kill(actor)
        self._playing, self._starting = {}, {}

    def _require_own(self, known: Iterable[Node]) -> None:
        """Raise EnvironmentFailure if Ray has lost the machine of this process, because Ray is then unusable."""
        own = ray.get_runtime_context().get_node_id()
        if any(node["NodeID"] == own and not node["Alive"] for node in known):
            raise EnvironmentFailure("Ray has lost this machine: its raylet has died, or was cut off for too long")

    def _able(self, known: Iterable[Node]) -> list[Node]:
        """Return the machines that should have a player."""
        able = []
        for node in known:
            if not node["Alive"]:
                self._waiting.pop(node["NodeID"], None)
            elif node["Resources"].get("CPU", 0) >= 1 and (self._head_plays or not is_head(node)):
                able.append(node)
        return able

    def _start(self, node: Node, now: float) -> None:
        number, threads = node["NodeID"], self._threads or int(node["Resources"]["CPU"])
        if number in self._playing or number in self._starting:
            return
        if now < self._waiting.setdefault(number, _Waiting()).at:
            return
        actor = make_player(number)
        ready = actor.start.remote(self.settings, threads, self.reference_batch)
        self._starting[number] = _Starting(number, actor, ready)

    def _ready(self, starting: _Starting) -> Machine | None:
        done, _ = ray.wait([starting.ready], timeout=0)
        if not done:
            return None
        del self._starting[starting.node]
        try:
            facts = ray.get(starting.ready)
        except RayError as error:
            self._failed(starting, reason_of(error), died=isinstance(error, RayActorError))
            return None
        if self._device not in (None, facts.device):
            self._failed(starting, f"its networks run on the {facts.device}, those of other machines on {self._device}")
            return None
        self._device = facts.device
        self._waiting.pop(starting.node, None)
        self._number += 1
        machine = self._playing[starting.node] = Machine(self._number, starting.node, starting.actor, facts)
        log.info("%s plays: %d threads, %d slots", facts.host, facts.threads, facts.slots)
        return machine

    def _failed(self, starting: _Starting, failure: str, died: bool = False) -> None:
        waiting = self._waiting.setdefault(starting.node, _Waiting())
        if failure != waiting.failure:
            log.warning("no player on machine %s: %s", starting.node[:12], failure)
        waiting.failure, waiting.died, waiting.at = failure, died, time.monotonic() + waiting.back_off
        if not died:
            waiting.back_off = min(2 * waiting.back_off, _LAST_BACK_OFF)
        kill(starting.actor)
