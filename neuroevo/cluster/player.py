"""Player on a machine of the cluster: a local evaluator with all of its cores, fed with pieces of batches.

Nothing here depends on Ray: actor.py makes an actor of a Player. Threads of the actor call it, so that new work reaches
a player while others wait for results. Its episodes may be several clients': evaluators, each with batches of its own.
"""

from __future__ import annotations

import atexit
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from neuroevo.cluster.origin import check_origin
from neuroevo.cluster.schedule import Piece
from neuroevo.cluster.table import EpisodeTable, TableReader
from neuroevo.core.behavior import Behavior
from neuroevo.core.closing import Closing
from neuroevo.core.episode import Batch, EpisodeResults
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import OwnNetworkLimits, Work
from neuroevo.core.genome import GAUSSIAN, Center, Kind
from neuroevo.core.user_module import KeptModule, keep
from neuroevo.networks.network import Network
from neuroevo.rollout.tensorflow_import import skip_optional_imports


@dataclass(frozen=True)
class PlayerSettings:
    """Settings of a player, the same on every machine.

    Attributes:
        env: The environment's name.
        env_options: Its options.
        file_sum: SHA-256 sum of the user's file that the environment is made from; None: there is no such file.
        networks: The networks that genomes refer to by index.
        device: "auto", "cpu" or "gpu".
        behavior: What to record of each episode; None: nothing.
        kind: Kind of the populations' mutations, as LocalEvaluator takes it.
        own_networks: Limits of genomes' own networks, likewise.
        cache_megabytes: Likewise.
        lanes: Lanes of each player; None: chosen from its machine.
        slots: Slots of each lane, likewise.
        engine: What runs the lanes: "auto", "native" or "tensorflow".
        origin: What the driver's machine has, as origin() returns it.
        modules: The user's modules that the driver has from a run's folder, as kept_modules() returns them.
        folder: Where the driver looks for other modules, as current_folder() returns it.
    """

    env: str
    env_options: Mapping[str, Any]
    file_sum: str | None
    networks: tuple[Network, ...]
    device: str = "auto"
    behavior: Behavior | None = None
    lanes: int | None = None
    slots: int | None = None
    engine: str = "auto"
    kind: Kind = GAUSSIAN
    own_networks: OwnNetworkLimits | None = None
    cache_megabytes: int = 600
    origin: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, KeptModule] = field(default_factory=dict)
    folder: str | None = None


@dataclass(frozen=True)
class PlayerFacts:
    """Properties of a player that the driver needs.

    Attributes:
        host: Name of its machine.
        threads: Worker threads.
        slots: How many episodes it plays at a time.
        device: Where it evaluates networks, "cpu" or "gpu".
        frame_skip: Emulator frames per step.
        observation_size: Length of an observation as a flat vector.
        num_actions: Number of the environment's actions.
        network_texts: The networks as layer lists.
        behavior_size: Numbers recorded of an episode.
        behavior_dtype: NumPy's name of their type.
    """

    host: str
    threads: int
    slots: int
    device: str
    frame_skip: int
    observation_size: int
    num_actions: int
    network_texts: Sequence[str]
    behavior_size: int
    behavior_dtype: str


@dataclass(frozen=True, eq=False)
class Report:
    """Work that a player has done for a client since the last report.

    Attributes:
        results: Of each batch, its number and the results; ids are indices in the batch.
        work: Since the client's first call: steps of its episodes that are over, and the time of the player's worker
            threads, in which they have worked for all clients.
    """

    results: Sequence[tuple[int, EpisodeResults]]
    work: Work


class Player(Closing):
    """Player of pieces of batches.

    Args:
        settings: What it plays.
        threads: Worker threads.
        reference_batch: Observations for vbn layers and safe mutations; None: the run needs none.
        fetch: Gets a batch's table and the vectors of its centers, in the table's order.

    Raises:
        UserError: This machine's neuroevo is not the driver's, or it cannot play with these settings.
    """

    def __init__(
        self,
        settings: PlayerSettings,
        threads: int,
        reference_batch: np.ndarray | None,
        fetch: Callable[[Any], tuple[EpisodeTable, Sequence[np.ndarray]]],
    ):
        check_origin(settings.origin)
        keep(settings.modules, settings.folder)
        skip_optional_imports()
        from neuroevo.envs import registry
        from neuroevo.rollout.evaluator import LocalEvaluator

        environment = registry.find(settings.env, settings.env_options)
        if environment.file is not None and environment.file.sha256() != settings.file_sum:
            where = f"{environment.file.path} on {socket.gethostname()}"
            raise UserError(f"{where} does not hold what it holds on the driver's machine")
        self._evaluator = LocalEvaluator(
            environment,
            settings.networks,
            device=settings.device,
            threads=threads,
            lanes=settings.lanes,
            slots=settings.slots,
            cache_megabytes=settings.cache_megabytes,
            engine=settings.engine,
            behavior=settings.behavior,
            kind=settings.kind,
            own_networks=settings.own_networks,
            reference_batch=reference_batch,
        )
        self._fetch = fetch
        self._clients: dict[str, _Client] = {}
        self._pieces: dict[Batch, tuple[_Client, Piece]] = {}  # by the evaluator's own batch for it
        self._news = threading.Condition()  # results have come; its lock is of all that is above
        self._failure: BaseException | None = None
        self._collector = threading.Thread(target=self._collect, name="results", daemon=True)
        self._collector.start()
        atexit.register(self.close)

    def facts(self) -> PlayerFacts:
        """Return the properties that the driver needs."""
        own = self._evaluator
        return PlayerFacts(
            host=socket.gethostname(),
            threads=own.threads,
            slots=own.lanes * own.slots,
            device=own.device,
            frame_skip=own.frame_skip,
            observation_size=own.observation_size,
            num_actions=own.num_actions,
            network_texts=own.network_texts,
            behavior_size=own.behavior_size,
            behavior_dtype=own.behavior_dtype.str,
        )

    def submit(
        self, client: str, pieces: Sequence[tuple[Piece, int]], new: Mapping[int, Any], over: Sequence[int] = ()
    ) -> None:
        """Submit pieces and return at once.

        Args:
            client: Name of the client.
            pieces: Each with the priority of its batch.
            new: Arguments of fetch(), by the number of each batch of which these are the first pieces.
            over: Batches of which no more pieces will come.
        """
        own = self._client(client)
        for number, where in new.items():
            table, vectors = self._fetch(where)
            own.readers[number] = TableReader(table, [Center(vector) for vector in vectors])
        for piece, priority in pieces:
            reader = own.readers[piece.batch]
            episodes = reader.episodes(piece.episodes)
            with self._news:  # _collect() waits until its piece is known
                batch = self._evaluator.submit(episodes, priority, parents=reader.shared_parents(piece.episodes))
                self._pieces[batch] = own, piece
        for number in over:
            own.readers.pop(number, None)

    def results(self, client: str, at_least: int, seconds: float) -> Report:
        """Report the episodes of a client that are over since its last call.

        Args:
            client: Name of the client.
            at_least: Number of episodes to wait for.
            seconds: How long to wait at most.

        Raises:
            EnvironmentFailure: An environment failed; the player plays nothing more.
        """
        with self._news:
            own = self._client(client)
            own.waits_for = at_least
            self._news.wait_for(lambda: own.new >= at_least or self._failure is not None, seconds)
            own.waits_for = None
            self.check()
            results, own.results, own.new = own.results, [], 0
            return Report(results, replace(self._evaluator.work() - own.before, steps=own.steps))

    def forget(self, client: str) -> None:
        """Drop the data of a client that is gone, once its episodes are over.

        Args:
            client: Name of the client.
        """
        self._clients.pop(client, None)

    def check(self) -> None:
        """Raise the exception that has ended this player's evaluator, if there is one."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the evaluator; the player plays nothing more. May be called more than once."""
        atexit.unregister(self.close)
        self._evaluator.close()
        self._collector.join()

    def _client(self, name: str) -> _Client:
        return self._clients.get(name) or self._clients.setdefault(name, _Client(self._evaluator.work()))

    def _collect(self) -> None:
        """Sort the evaluator's results by client, as long as the process lives."""
        try:
            while True:
                with self._news:
                    wanted = [own.waits_for - own.new for own in self._clients.values() if own.waits_for is not None]
                new = self._evaluator.results(max(1, min(wanted, default=1)))
                with self._news:
                    for batch, results in new:
                        self._sort(batch, results)
                    if new:
                        self._news.notify_all()
        except BaseException as error:
            with self._news:
                self._failure = error
                self._news.notify_all()

    def _sort(self, batch: Batch, results: EpisodeResults) -> None:
        own, piece = self._pieces[batch]
        own.results.append((piece.batch, replace(results, ids=piece.episodes[results.ids])))
        own.new += len(results)
        own.steps += int(results.steps.sum())
        if not batch.left:
            del self._pieces[batch]


@dataclass(eq=False)
class _Client:
    """Client whose episodes are played, and those of its episodes that are over."""

    before: Work  # of the player, when it came
    readers: dict[int, TableReader] = field(default_factory=dict)  # by the number of the batch
    results: list[tuple[int, EpisodeResults]] = field(default_factory=list)  # since its last report
    new: int = 0  # episodes among them
    steps: int = 0
    waits_for: int | None = None  # as many episodes, if it waits
