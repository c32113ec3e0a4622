"""Players that several runs share, such as the trials of a sweep: one for each machine and kind of episode.

A run of a small population leaves slots idle at every generation's end, and a process with TensorFlow for each run
takes its memory. Here the runs of many processes have their episodes played by the same players. Whoever needs one
first starts it; it has a name, by which the others find it, and ends itself when nobody has called it for a while.
"""

from __future__ import annotations

import hashlib
import logging
import time
import uuid
from contextlib import suppress
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayError
from ray.util import list_named_actors

from neuroevo.cluster.actor import kill, make_player
from neuroevo.cluster.connection import nodes, reason_of
from neuroevo.cluster.machines import Machine
from neuroevo.cluster.player import PlayerSettings
from neuroevo.core.errors import UserError

log = logging.getLogger("neuroevo")
_NAME = "neuroevo player"
_CLIENTS = 64  # of a player at a time
_BACK_OFF = 2.0  # seconds before a player is asked for again


class SharedMachine:
    """The one machine on which a run plays with a player that it shares; in place of Machines, whose methods it has.

    Args:
        settings: What the player plays.
        threads: Its worker threads; None: as many as its machine offers Ray.
        reference_batch: Observations for vbn layers; None: the networks have none.
        turn: Which of the runs this is; machines take turns.

    Attributes:
        client: What the player knows the run by; another name for each player that it gets.
    """

    def __init__(
        self, settings: PlayerSettings, threads: int | None, reference_batch: np.ndarray | None = None, turn: int = 0
    ):
        self.client = ""
        self._settings, self._threads, self._reference_batch, self._turn = settings, threads, reference_batch, turn
        self._starting: tuple[str, Any, Any] | None = None  # machine, actor, and Ray's reference to its facts
        self._machine: Machine | None = None
        self._failure, self._again, self._number = "", 0.0, 0

    def poll(self) -> list[Machine]:
        """Asks for a player if there is none, and returns it once it is ready."""
        if self._machine is not None or time.monotonic() < self._again:
            return []
        if self._starting is None:
            self._starting = self._find()
        node, actor, ready = self._starting
        if not ray.wait([ready], timeout=0)[0]:
            return []
        self._starting = None
        try:
            facts = ray.get(ready)
        except RayError as error:
            self._failure, self._again = reason_of(error), time.monotonic() + _BACK_OFF
            log.warning("no player: %s", self._failure)
            kill(actor)
            return []
        self._failure, self._number, self.client = "", self._number + 1, uuid.uuid4().hex
        self._machine = Machine(self._number, node, actor, facts)
        log.info("%s plays: %d threads, %d slots, shared", facts.host, facts.threads, facts.slots)
        return [self._machine]

    def lost(self, machine: Machine, why: str) -> None:
        """The player has died or does not answer; another one is asked for."""
        log.warning("lost the shared player on %s: %s", machine.facts.host, why)
        self._machine = None

    def failures(self) -> list[str]:
        """Why the player could not start, if it could not."""
        return [self._failure] if self._failure else []

    @property
    def starting(self) -> int:
        """How many players are on their way."""
        return int(self._starting is not None)

    def close(self) -> None:
        """Leaves the player to the other runs."""
        if self._machine is not None:
            self._machine.actor.forget.remote(self.client)
            self._machine = None

    def _find(self) -> tuple[str, Any, Any]:
        """The machine whose turn it is, with its player, which the first to ask starts."""
        able = [node for node in nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        if not able:
            raise UserError("no machine of the cluster offers Ray a CPU")
        node = sorted(able, key=lambda node: str(node["NodeID"]))[self._turn % len(able)]
        batch, threads = self._reference_batch, self._threads or int(node["Resources"]["CPU"])
        kind = repr((self._settings, threads, None if batch is None else batch.tobytes()))
        name = f"{_NAME} {hashlib.sha256(kind.encode()).hexdigest()[:16]} on {node['NodeID']}"
        actor = make_player(node["NodeID"], name, _CLIENTS)
        return node["NodeID"], actor, actor.start.remote(self._settings, threads, batch)


def end_players() -> None:
    """Ends all shared players of this Ray job."""
    with suppress(RayError, ConnectionError, RuntimeError):  # the cluster has ended, and they with it
        for name in list_named_actors():
            if name.startswith(_NAME):
                with suppress(ValueError):  # it has ended by itself
                    kill(ray.get_actor(name))
