"""Ray actor that contains a player; the driver calls its methods concurrently."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from neuroevo.cluster.player import Player, PlayerFacts, PlayerSettings


class PlayerActor:
    """Ray actor with a player. Ray runs several of its methods concurrently."""

    def __init__(self) -> None:
        """Make the actor without its player."""
        self._player: Player | None = None
        self._next = 0  # number of the driver's next message
        self._submitted = threading.Condition()

    def start(self, settings: PlayerSettings, threads: int, reference_batch: np.ndarray | None) -> PlayerFacts:
        """Make the player with the arguments of Player, and return its facts."""
        self._player = Player(settings, threads, reference_batch, _fetch)
        return self._player.facts()

    def submit(self, number: int, pieces: bytes, new: dict[int, Any], over: Sequence[int]) -> None:
        """Submit pieces as Player.submit() does, in the order of the driver's messages.

        Args:
            number: Number of the message, from 0; Ray's threads may receive messages out of order.
            pieces: Pairs of a piece and its priority, pickled here because Ray's pickling takes the driver longer.
            new: Ray's references to the tables and centers of batches that are new to this player, by number.
            over: Numbers of finished batches.
        """
        assert self._player is not None, "started"
        with self._submitted:
            self._submitted.wait_for(lambda: self._next == number)
            try:
                self._player.submit(pickle.loads(pieces), new, over)
            finally:
                self._next += 1
                self._submitted.notify_all()

    def results(self, at_least: int, seconds: float, *message: Any) -> bytes:
        """Submit a message, which consists of the arguments of submit(), and return Player.results(), pickled."""
        self.submit(*message)
        assert self._player is not None, "started"
        return pickle.dumps(self._player.results(at_least, seconds), protocol=5)


def make_player(node: str) -> Any:
    """Start the process of a player.

    Args:
        node: Ray's identifier of the machine.

    Returns:
        Ray's handle of a PlayerActor, to be started.
    """
    actor = ray.remote(PlayerActor).options(
        num_cpus=0,  # the player uses the whole machine; it must not wait for Ray's count of free cores
        max_concurrency=2,  # the driver waits for results while it submits
        max_restarts=0,
        max_task_retries=0,
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
    )
    return actor.remote()


def _fetch(where: tuple[Any, Sequence[Any]]) -> tuple[Any, list[np.ndarray]]:
    """Return a table and its centers, which Ray transfers to this machine once."""
    table, centers = where
    return ray.get(table), ray.get(list(centers))


def kill(actor: Any) -> None:
    """Terminate an actor that may have terminated already."""
    with suppress(RayError, ValueError):
        ray.kill(actor)
