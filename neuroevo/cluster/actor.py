"""Ray's actor with a player: its methods are called by drivers, several at a time."""

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

_IDLE_SECONDS = 120.0  # without a call, after which a shared player ends itself


class PlayerActor:
    """Player in a process of its own on one machine. Ray runs several of its methods at a time."""

    def __init__(self, idle_seconds: float | None = None):
        """Make the actor without its player.

        Args:
            idle_seconds: Time without a call after which the process ends itself; None: never.
        """
        self._turns: dict[str, _Turn] = {}  # by client
        self._player: Player | None = None
        self._lock = threading.Lock()  # while the player is made
        self._called = time.monotonic()
        if idle_seconds is not None:
            threading.Thread(target=self._end_when_idle, args=[idle_seconds], daemon=True).start()

    def start(self, settings: PlayerSettings, threads: int, reference_batch: np.ndarray | None) -> PlayerFacts:
        """Make the player, unless there is one, with the arguments of Player.

        Raises:
            EnvironmentFailure: An environment has failed; the player plays nothing more.
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
            number: Number of the client's message, from 0; Ray's threads may start with a later one.
            pieces: Each with its priority, pickled, since Ray's own pickling of objects takes the driver longer.
            new: Ray's references to the tables and centers of batches that are new to this player, by number.
            over: Batches of which no more pieces will come.
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
        name: Name by which others find it; it then outlives this process, but not a time without a call. None: no name.
        clients: How many there may be at a time.

    Returns:
        Ray's handle of a PlayerActor, to be started.
    """
    shared: dict[str, Any] = {} if name is None else dict(name=name, get_if_exists=True, lifetime="detached")
    actor = ray.remote(PlayerActor).options(
        num_cpus=0,  # the machine is this player's; Ray's count of free cores must not keep it waiting
        max_concurrency=2 * clients,  # each may wait for results while it submits
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
    """End an actor that may have ended already."""
    with suppress(RayError, ValueError):
        ray.kill(actor)
