"""Players that several runs share, such as the trials of a sweep: one player per machine and PlayerSettings.

A run with a small population leaves slots idle at the end of each generation, and each process with TensorFlow takes
memory. With shared players, one process plays the episodes of many runs. The first run that needs a player starts it
under a name, by which the other runs find it; the player terminates itself after a time without calls.
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
_CLIENTS = 64  # maximal number of concurrent clients of a player


class SharedMachine(Machines):
    """Single machine with a player that several runs share.

    Args:
        settings: The player's settings.
        threads: Worker threads of the player; None: the number of CPUs that the machine offers Ray.
        turn: Index of this run; runs are assigned to machines round-robin.
    """

    def __init__(self, settings: PlayerSettings, threads: int | None = None, turn: int = 0):
        super().__init__(settings, threads=threads)
        self._turn = turn

    def _able(self, known: Iterable[Node]) -> list[Node]:
        able = sorted(super()._able(known), key=lambda node: str(node["NodeID"]))
        return [able[self._turn % len(able)]] if able and not (self._playing or self._starting) else []

    def _make(self, node: str, threads: int) -> Any:
        """Return the player with this run's settings; the first run that needs it starts it."""
        kind = hashlib.sha256(repr((self.settings, threads)).encode()).hexdigest()[:16]
        return make_player(node, f"{_NAME} {kind} on {node}", _CLIENTS)

    def _let_go(self, actor: Any, client: str | None = None) -> None:
        """Leave the player to the other runs."""
        if client is not None:
            with suppress(RayError):
                actor.forget.remote(client)


def end_players() -> None:
    """Terminate all shared players in the namespace of this process; see join()."""
    with suppress(RayError, ConnectionError, RuntimeError):  # the cluster has shut down, and the players with it
        for name in list_named_actors():
            if name.startswith(_NAME):
                with suppress(ValueError):  # it has terminated itself
                    kill(ray.get_actor(name))
