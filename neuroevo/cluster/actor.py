"""Ray actor that contains a player; drivers call its methods concurrently."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from neuroevo.cluster.player import Player, PlayerFacts, PlayerSettings

_IDLE_SECONDS = 120.0  # time without a call after which a shared player terminates itself


class PlayerActor:
    """Ray actor with a player. Ray runs several of its methods concurrently."""

    def __init__(self, idle_seconds: float | None = None):
        """Make the actor without its player.

        Args:
            idle_seconds: Time without a call after which the process terminates itself; None: never.
        """
        self._turns: dict[str, _Turn] = {}  # by client
        self._player: Player | None = None
        self._lock = threading.Lock()  # held while the player is made
        self._called = time.monotonic()
        if idle_seconds is not None:
            threading.Thread(target=self._end_when_idle, args=[idle_seconds], daemon=True).start()

    def start(self, settings: PlayerSettings, threads: int, reference_batch: np.ndarray | None) -> PlayerFacts:
        """Make the player with the arguments of Player, unless it exists, and return its facts.

        Raises:
            EnvironmentFailure: An environment has failed; the player is unusable.
        """
        with self._lock:
            self._called = time.monotonic()
            if self._player is None:
                self._player = Player(settings, threads, reference_batch, _fetch)
            self._called = time.monotonic()
        self._player.check()
        return self._player.facts()

    def submit(self, client: str, number: int, pieces: bytes, new: dict[int, Any], over: Sequence[int]) -> None:
        """Submit pieces as Player.submit() does, in the order of the client's messages.

        Args:
            client: Name of the client.
            number: Number of the client's message, from 0; Ray's threads may receive messages out of order.
            pieces: Pairs of a piece and its priority, pickled here because Ray's pickling takes the driver longer.
            new: Ray's references to the tables and centers of batches that are new to this player, by number.
            over: Numbers of finished batches.
        """
        assert self._player is not None, "started"
        self._called = time.monotonic()
        turn = self._turns.setdefault(client, _Turn())
        with turn.changed:
            turn.changed.wait_for(lambda: turn.next == number)
            try:
                self._player.submit(client, pickle.loads(pieces), new, over)
            finally:
                turn.next += 1
                turn.changed.notify_all()

    def results(self, client: str, at_least: int, seconds: float, *message: Any) -> bytes:
        """Submit a message, which consists of the arguments of submit(), and return Player.results(), pickled."""
        self.submit(client, *message)
        assert self._player is not None, "started"
        return pickle.dumps(self._player.results(client, at_least, seconds), protocol=5)

    def forget(self, client: str) -> None:
        """Drop a client as Player.forget() does."""
        self._turns.pop(client, None)
        if self._player is not None:
            self._player.forget(client)

    def _end_when_idle(self, seconds: float) -> None:
        while time.monotonic() - self._called < seconds:
            time.sleep(1)
        os._exit(0)


@dataclass(eq=False)
class _Turn:
    """Number of a client's next message."""

    next: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)


def make_player(node: str, name: str | None = None, clients: int = 1) -> Any:
    """Start the process of a player, or look up the one of this name.

    Args:
        node: Ray's identifier of the machine.
        name: Name under which other processes find the player; it outlives this process and terminates when idle. None:
            the player has no name.
        clients: Maximal number of concurrent clients.

    Returns:
        Ray's handle of a PlayerActor, to be started.
    """
    shared: dict[str, Any] = {} if name is None else dict(name=name, get_if_exists=True, lifetime="detached")
    actor = ray.remote(PlayerActor).options(
        num_cpus=0,  # the player uses the whole machine; it must not wait for Ray's count of free cores
        max_concurrency=2 * clients,  # each client may wait for results while it submits
        max_restarts=0,
        max_task_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        **shared,
    )
    return actor.remote(None if name is None else _IDLE_SECONDS)


def _fetch(where: tuple[Any, Sequence[Any]]) -> tuple[Any, list[np.ndarray]]:
    """Return a table and its centers, which Ray transfers to this machine once for all callers."""
    table, centers = where
    return ray.get(table), ray.get(list(centers))


def kill(actor: Any) -> None:
    """Terminate an actor that may have terminated already."""
    with suppress(RayError, ValueError):
        ray.kill(actor)
