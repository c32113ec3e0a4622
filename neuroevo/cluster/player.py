"""Player on a machine of the cluster: a local evaluator on all of the machine's cores that plays pieces of batches.

Nothing here depends on Ray: actor.py wraps a Player in an actor. The actor's threads call it concurrently, so that new
work arrives while another call waits for results.
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
        env_options: The environment's options.
        file_sum: SHA-256 digest of the user's file that defines the environment; None: no such file is used.
        network: The network.
        device: Device for networks: "auto", "cpu" or "gpu".
        behavior: Behavior to record of each episode; None: no behavior is recorded.
        kind: Kind of the populations' mutations; see LocalEvaluator.
        own_networks: Limits of genomes' own networks, likewise.
        cache_megabytes: Likewise.
        lanes: Lanes of each player; None: chosen for its machine.
        slots: Slots of each lane, likewise.
        engine: Engine that runs the lanes: "auto", "native" or "tensorflow".
        origin: Versions and builds of the driver's machine, from origin().
        modules: The user's modules that the driver loaded from a run's folder, from kept_modules().
        folder: Folder from which the driver imports other modules, from current_folder().
    """

    env: str
    env_options: Mapping[str, Any]
    file_sum: str | None
    network: Network
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
        threads: Number of worker threads.
        slots: Number of episodes that it plays concurrently.
        device: Device that evaluates networks, "cpu" or "gpu".
        frame_skip: Emulator frames per step.
        observation_size: Length of an observation as a flat vector.
        num_actions: Number of the environment's actions.
        network_text: The network as a layer list.
        behavior_size: Number of behavior values recorded per episode.
        behavior_dtype: NumPy's name of their dtype.
    """

    host: str
    threads: int
    slots: int
    device: str
    frame_skip: int
    observation_size: int
    num_actions: int
    network_text: str
    behavior_size: int
    behavior_dtype: str


@dataclass(frozen=True, eq=False)
class Report:
    """Results since the last report, and the work of a player.

    Attributes:
        results: Pairs of a batch's number and its new results, whose ids are indices in the batch.
        work: All work so far.
    """

    results: Sequence[tuple[int, EpisodeResults]]
    work: Work


class Player(Closing):
    """Player of pieces of batches.

    Args:
        settings: The player's settings.
        threads: Number of worker threads.
        reference_batch: Observations for vbn layers and safe mutations; None: the run needs no reference batch.
        fetch: Function that returns a batch's table and the vectors of its centers, in the table's order.

    Raises:
        UserError: The versions or builds of this machine differ from the driver's, or the settings are unusable here.
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
            raise UserError(f"{where} differs from the file on the driver's machine")
        self._evaluator = LocalEvaluator(
            environment,
            settings.network,
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
        self._readers: dict[int, TableReader] = {}  # by the number of the batch
        self._pieces: dict[Batch, Piece] = {}  # by the batch of the local evaluator
        self._results: list[tuple[int, EpisodeResults]] = []  # since the last report
        self._new = 0  # number of episodes in them
        self._waits_for: int | None = None  # number of new episodes that a pending results() waits for
        self._news = threading.Condition()  # new results; its lock also guards the attributes above
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
            network_text=own.network_texts[0],
            behavior_size=own.behavior_size,
            behavior_dtype=own.behavior_dtype.str,
        )

    def submit(self, pieces: Sequence[tuple[Piece, int]], new: Mapping[int, Any], over: Sequence[int] = ()) -> None:
        """Submit pieces and return immediately.

        Args:
            pieces: Pairs of a piece and the priority of its batch.
            new: Arguments of fetch() for batches that are new to this player, by their numbers.
            over: Numbers of finished batches.
        """
        for number, where in new.items():
            table, vectors = self._fetch(where)
            self._readers[number] = TableReader(table, [Center(vector) for vector in vectors])
        for piece, priority in pieces:
            reader = self._readers[piece.batch]
            episodes = reader.episodes(piece.episodes)
            with self._news:  # so that _collect() finds the piece of each batch
                batch = self._evaluator.submit(episodes, priority, parents=reader.shared_parents(piece.episodes))
                self._pieces[batch] = piece
        for number in over:
            self._readers.pop(number, None)

    def results(self, at_least: int, seconds: float) -> Report:
        """Report the episodes that have finished since the last call.

        Args:
            at_least: Number of episodes to wait for.
            seconds: Maximal time to wait.

        Raises:
            EnvironmentFailure: An environment failed; the player is unusable.
        """
        with self._news:
            self._waits_for = at_least
            self._news.wait_for(lambda: self._new >= at_least or self._failure is not None, seconds)
            self._waits_for = None
            if self._failure is not None:
                raise self._failure
            results, self._results, self._new = self._results, [], 0
            return Report(results, self._evaluator.work())

    def close(self) -> None:
        """Close the evaluator. May be called more than once."""
        atexit.unregister(self.close)
        self._evaluator.close()
        self._collector.join()

    def _collect(self) -> None:
        """Collect the evaluator's results, as long as the process lives."""
        try:
            while True:
                with self._news:
                    wanted = 1 if self._waits_for is None else self._waits_for - self._new
                new = self._evaluator.results(max(1, wanted))
                if not new:
                    continue
                with self._news:
                    for batch, results in new:
                        piece = self._pieces[batch]
                        self._results.append((piece.batch, replace(results, ids=piece.episodes[results.ids])))
                        self._new += len(results)
                        if not batch.left:
                            del self._pieces[batch]
                    self._news.notify_all()
        except BaseException as error:
            with self._news:
                self._failure = error
                self._news.notify_all()
