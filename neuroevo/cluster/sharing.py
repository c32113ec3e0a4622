"""Players that several runs share, such as the trials of a sweep: one for each machine and kind of episode.

A run of a small population leaves slots idle at every generation's end, and a process with TensorFlow for each run
takes its memory. Here the runs of many processes have their episodes played by the same players. The first run
that needs a player starts it; it has a name, by which the others find it, and ends itself after a while without a call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util import list_named_actors

from neuroevo.cluster.actor import kill, make_player
from neuroevo.cluster.connection import Node
from neuroevo.cluster.machines import Machines
from neuroevo.cluster.player import PlayerSettings

_NAME = "neuroevo player"
_CLIENTS = 64  # of a player at a time


class SharedMachine(Machines):
    """Single machine on which a run plays with a player that it shares.

    Args:
        settings: What the player plays.
        threads: Its worker threads; None: as many as its machine offers Ray.
        turn: Index of this run; runs are assigned to machines in turn.
    """

    def __init__(self, settings: PlayerSettings, threads: int | None = None, turn: int = 0):
        super().__init__(settings, threads=threads)
        self._turn = turn

    def _able(self, known: Iterable[Node]) -> list[Node]:
        able = sorted(super()._able(known), key=lambda node: str(node["NodeID"]))
        return [able[self._turn % len(able)]] if able and not (self._playing or self._starting) else []

    def _make(self, node: str, threads: int) -> Any:
        """Return the player for what this run plays; the first run that needs it starts it."""
        kind = hashlib.sha256(repr((self._settings, threads)).encode()).hexdigest()[:16]
        return make_player(node, f"{_NAME} {kind} on {node}", _CLIENTS)

    def _let_go(self, actor: Any, client: str | None = None) -> None:
        """Leave the player to the other runs."""
        if client is not None:
            with suppress(RayError):
                actor.forget.remote(client)


def end_players() -> None:
    """End the shared players of all that have joined the cluster with this process's name."""
    with suppress(RayError, ConnectionError, RuntimeError):  # the cluster has ended, and they with it
        for name in list_named_actors():
            if name.startswith(_NAME):
                with suppress(ValueError):  # it has ended by itself
                    kill(ray.get_actor(name))
