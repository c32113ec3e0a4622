"""What plays on a machine of the cluster: a local evaluator with all of its cores, fed with pieces of batches.

Nothing here knows Ray: machines.py makes an actor of a Player. Two threads of the actor call it, so that new work
reaches a player that waits for results.
"""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.cluster.schedule import Piece
from neuroevo.cluster.table import EpisodeTable, TableReader
from neuroevo.core.behavior import Behavior
from neuroevo.core.episode import Batch, EpisodeResults
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center
from neuroevo.core.version import VERSION
from neuroevo.native import library
from neuroevo.networks.architectures import Network
from neuroevo.system.tensorflow_import import load_tensorflow


@dataclass(frozen=True)
class PlayerSettings:
    """What a player plays, the same on every machine.

    Attributes:
        env: The environment's name.
        env_options: Its options.
        file_sum: SHA-256 sum of the file of the user's own that the environment is made from; None: there is none.
        network: Of the genomes.
        device: "auto", "cpu" or "gpu".
        behavior: What to record of each episode; None: nothing.
        lanes: Lanes of each player; None: chosen from its machine.
        slots: Slots of each lane, likewise.
        origin: What the driver's machine has, as origin() gives it.
    """

    env: str
    env_options: Mapping[str, Any]
    file_sum: str | None
    network: Network
    device: str = "auto"
    behavior: Behavior | None = None
    lanes: int | None = None
    slots: int | None = None
    origin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PlayerFacts:
    """What the driver needs to know of a player.

    Attributes:
        host: Name of its machine.
        threads: Worker threads.
        slots: How many episodes it plays at a time.
        device: Where it evaluates networks, "cpu" or "gpu".
        frame_skip: Emulator frames per step.
        observation_size: Length of an observation as a flat vector.
        num_actions: Of the environment.
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
    """What a player has done since its last report.

    Attributes:
        results: Of each batch, its number and the results; ids are indices in the batch.
        steps: Steps of all episodes since the player was made.
        busy_seconds: Time that its worker threads spent working since then, summed over the threads.
    """

    results: Sequence[tuple[int, EpisodeResults]]
    steps: int
    busy_seconds: float


class Player:
    """Plays pieces of batches.

    Args:
        settings: What it plays.
        threads: Worker threads.
        reference_batch: Observations for vbn layers; None: the network has none.
        fetch: Gets a batch's table and the vectors of its centers, in the table's order.

    Raises:
        UserError: This machine has another neuroevo than the driver's, or cannot play this.
    """

    def __init__(
        self,
        settings: PlayerSettings,
        threads: int,
        reference_batch: np.ndarray | None,
        fetch: Callable[[Any], tuple[EpisodeTable, Sequence[np.ndarray]]],
    ):
        check_origin(settings.origin)
        load_tensorflow()
        from neuroevo.envs import registry
        from neuroevo.rollout.evaluator import LocalEvaluator

        environment = registry.find(settings.env, settings.env_options)
        if environment.file is not None and environment.file.sha256() != settings.file_sum:
            where = f"{environment.file.path} on {socket.gethostname()}"
            raise UserError(f"{where} does not hold what it holds on the driver's machine")
        self._evaluator = LocalEvaluator(
            environment,
            settings.network,
            device=settings.device,
            threads=threads,
            lanes=settings.lanes,
            slots=settings.slots,
            behavior=settings.behavior,
            reference_batch=reference_batch,
        )
        self._fetch = fetch
        self._readers: dict[int, TableReader] = {}  # by the number of the batch
        self._pieces: dict[Batch, Piece] = {}  # by the evaluator's own batch for it
        self._lock = threading.Lock()  # of _pieces

    def facts(self) -> PlayerFacts:
        """What the driver needs to know."""
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

    def submit(self, pieces: Sequence[tuple[Piece, int, Any]], over: Sequence[int] = ()) -> None:
        """Takes pieces and returns at once.

        Args:
            pieces: Each with the priority of its batch and what fetch() takes.
            over: Batches of which nothing more will come.
        """
        for piece, priority, where in pieces:
            reader = self._reader(piece.batch, where)
            episodes = reader.episodes(piece.episodes)
            with self._lock:  # results() waits until its piece is known
                batch = self._evaluator.submit(episodes, priority, reader.shared_parents(piece.episodes))
                self._pieces[batch] = piece
        for number in over:
            self._readers.pop(number, None)

    def results(self, at_least: int, seconds: float) -> Report:
        """What is over since the last call.

        Args:
            at_least: Waits for this number of episodes,
            seconds: but no longer than this.
        """
        new = self._evaluator.results(at_least, seconds)
        results = []
        with self._lock:
            for batch, own in new:
                piece = self._pieces[batch]
                results.append((piece.batch, replace(own, ids=piece.episodes[own.ids])))
                if not batch.left:
                    del self._pieces[batch]
        done = self._evaluator.work()
        return Report(results, done.steps, done.busy_seconds)

    def _reader(self, number: int, where: Any) -> TableReader:
        if number not in self._readers:
            table, vectors = self._fetch(where)
            self._readers[number] = TableReader(table, [Center(vector) for vector in vectors])
        return self._readers[number]


def origin() -> dict[str, str]:
    """What has to be the same on all machines, by what it is called."""
    build = library.build_info()
    return {
        "neuroevo": VERSION,
        "Python sources of neuroevo (SHA-256)": _sources(),
        **{f"native code's {name}": str(build.get(name)) for name in ("ale", "mujoco", "sanitize")},
    }


def _sources() -> str:
    """A SHA-256 sum over the package's modules, which tells a checkout of another commit from this one."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def check_origin(expected: Mapping[str, str]) -> None:
    """Whether this machine has what the driver has.

    Args:
        expected: origin() of the driver's machine.

    Raises:
        UserError: It has not; the first difference.
    """
    found = origin()
    for name, value in expected.items():
        if found.get(name) != value:
            raise UserError(
                f"{socket.gethostname()} has {name} {found.get(name)}, expected {value} as the driver has; "
                "install the same on every machine"
            )
