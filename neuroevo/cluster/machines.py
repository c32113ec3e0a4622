"""The machines of a Ray cluster: joins the cluster, and keeps a player on every machine that is alive.

Losing a machine and gaining one are the same thing: whatever machine has no player gets one. A machine on which a
player raises an error when it starts is tried again later, each time after twice the time.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from neuroevo.cluster.player import Player, PlayerFacts, PlayerSettings
from neuroevo.cluster.schedule import Piece
from neuroevo.core.errors import UserError
from neuroevo.core.settings import host_and_port

log = logging.getLogger("neuroevo")
_POLL_SECONDS = 2.0  # between looks at which machines are alive
_FIRST_BACK_OFF, _LAST_BACK_OFF = 2.0, 120.0  # seconds
_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 120.0  # without a call, after which a shared player ends itself


class PlayerActor:
    """A Player in a process of its own on one machine. Ray runs several of its methods at a time."""

    def __init__(self, idle_seconds: float | None = None):
        """Args: after how long without a call it ends itself; None: never."""
        self._senders: dict[str, _Sender] = {}  # by client
        self._player: Player | None = None
        self._lock = threading.Lock()  # while the player is made
        self._called = time.monotonic()
        if idle_seconds is not None:
            threading.Thread(target=self._end_when_idle, args=[idle_seconds], daemon=True).start()

    def start(self, settings: PlayerSettings, threads: int, reference_batch: np.ndarray | None) -> PlayerFacts:
        """Makes the player, unless there is one; arguments as it has them.

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
        """As Player.submit().

        Args:
            client: Whose.
            number: Of the client's message, from 0; Ray's threads may begin with a later one.
            pieces: Each with its priority, pickled, since Ray's own pickling of objects takes the driver longer.
            new: Ray's references to the tables and centers of batches that this player has not heard of, by number.
            over: Batches of which nothing more will come.
        """
        assert self._player is not None, "started"
        self._called = time.monotonic()
        sender = self._senders.setdefault(client, _Sender())
        own: list[tuple[Piece, int]] = pickle.loads(pieces)
        with sender.turn:
            sender.turn.wait_for(lambda: sender.next == number)
            try:
                where = sender.where = {each: at for each, at in {**sender.where, **new}.items() if each not in over}
                self._player.submit(client, [(piece, priority, where[piece.batch]) for piece, priority in own], over)
            finally:
                sender.next += 1
                sender.turn.notify_all()

    def results(self, client: str, at_least: int, seconds: float, *message: Any) -> bytes:
        """As submit(), whose arguments a message is, and then Player.results(), pickled."""
        self.submit(client, *message)
        assert self._player is not None, "started"
        return pickle.dumps(self._player.results(client, at_least, seconds), protocol=5)

    def forget(self, client: str) -> None:
        """As Player.forget()."""
        self._senders.pop(client, None)
        if self._player is not None:
            self._player.forget(client)

    def _end_when_idle(self, seconds: float) -> None:
        while time.monotonic() - self._called < seconds:
            time.sleep(1)
        os._exit(0)


@dataclass(eq=False)
class _Sender:
    """A client, as far as its messages go: which is next, and where the tables are that it has told of, by batch."""

    next: int = 0
    where: dict[int, Any] = field(default_factory=dict)
    turn: threading.Condition = field(default_factory=threading.Condition)


def make_player(node: str, name: str | None = None, clients: int = 1) -> Any:
    """Starts the process of a player, or finds the one of this name.

    Args:
        node: Ray's identifier of the machine.
        name: What others find it by; it then outlives this process, but not a time without a call. None: nothing.
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
    """A table and its centers, which Ray brings to this machine once, however many ask for them."""
    table, centers = where
    return ray.get(table), ray.get(list(centers))


@dataclass(eq=False)
class Machine:
    """A machine with a player that takes part.

    Attributes:
        number: The player's, which none had before.
        node: Ray's identifier of the machine.
        actor: Ray's handle of the player.
        facts: What is known of it.
        steps: Steps of all episodes that it has played so far.
        busy_seconds: What its worker threads have spent on them.
    """

    number: int
    node: str
    actor: Any
    facts: PlayerFacts
    steps: int = 0
    busy_seconds: float = 0.0


@dataclass
class _Waiting:
    """A machine without a player: when to try again, and what failed."""

    at: float = 0.0
    back_off: float = _FIRST_BACK_OFF
    failure: str = ""


@dataclass(eq=False)
class _Starting:
    node: str
    actor: Any
    ready: Any  # Ray's reference to the facts


class Machines:
    """Players on the machines of the cluster that this process has joined.

    Args:
        settings: What they play.
        reference_batch: Observations for vbn layers; None: the network has none.
        threads: Worker threads of each; None: as many as the machine offers Ray.
        head_plays: Whether the machine of the cluster's head has a player.

    Attributes:
        client: What the players know this process by.
    """

    client = "run"

    def __init__(
        self,
        settings: PlayerSettings,
        reference_batch: np.ndarray | None = None,
        threads: int | None = None,
        head_plays: bool = True,
    ):
        self._settings, self._reference_batch = settings, reference_batch
        self._threads, self._head_plays = threads, head_plays
        self._playing: dict[str, Machine] = {}  # by node
        self._starting: dict[str, _Starting] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._polled = -_POLL_SECONDS
        self._number = 0
        self._device: str | None = None  # of all players: outcomes in float32 differ between the CPU and the GPU

    def poll(self) -> list[Machine]:
        """Starts players where there is none, and returns those that have become ready to play since the last call."""
        now = time.monotonic()
        if now - self._polled >= _POLL_SECONDS:
            self._polled = now
            for node in nodes():
                self._start(node, now)
        return [machine for each in list(self._starting.values()) if (machine := self._ready(each)) is not None]

    def lost(self, machine: Machine, why: str) -> None:
        """A machine's player has died or does not answer; it gets another one, if the machine lives."""
        log.warning("lost the player on %s: %s", machine.facts.host, why)
        self._playing.pop(machine.node, None)
        self._waiting[machine.node] = _Waiting()
        self._polled = -_POLL_SECONDS
        kill(machine.actor)

    def failures(self) -> list[str]:
        """Why players could not start, on machines that have none."""
        return [waiting.failure for waiting in self._waiting.values() if waiting.failure]

    @property
    def starting(self) -> int:
        """How many players are on their way."""
        return len(self._starting)

    def close(self) -> None:
        """Ends all players."""
        for machine in self._playing.values():
            kill(machine.actor)
        for starting in self._starting.values():
            kill(starting.actor)
        self._playing, self._starting = {}, {}

    def _start(self, node: dict[str, Any], now: float) -> None:
        number = node["NodeID"]
        if not node["Alive"]:
            self._waiting.pop(number, None)
            return
        cores = node["Resources"].get("CPU", 0)
        is_head = "node:__internal_head__" in node["Resources"]
        if number in self._playing or number in self._starting or (is_head and not self._head_plays) or cores < 1:
            return
        if now < self._waiting.setdefault(number, _Waiting()).at:
            return
        actor = make_player(number)
        ready = actor.start.remote(self._settings, self._threads or int(cores), self._reference_batch)
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
            self._failed(starting, f"networks are on its {facts.device}, on other machines' {self._device}")
            return None
        self._device = facts.device
        self._waiting.pop(starting.node, None)
        self._number += 1
        machine = self._playing[starting.node] = Machine(self._number, starting.node, starting.actor, facts)
        log.info("%s plays: %d threads, %d slots", facts.host, facts.threads, facts.slots)
        return machine

    def _failed(self, starting: _Starting, failure: str, died: bool = False) -> None:
        """died: its process was ended from outside, which says nothing about the next one."""
        waiting = self._waiting.setdefault(starting.node, _Waiting())
        if failure != waiting.failure:
            log.warning("no player on machine %s: %s", starting.node[:12], failure)
        waiting.failure, waiting.at = failure, time.monotonic() + waiting.back_off
        if not died:
            waiting.back_off = min(2 * waiting.back_off, _LAST_BACK_OFF)
        kill(starting.actor)


def join(address: str) -> bool:
    """Joins a Ray cluster, or starts one of this machine alone.

    Args:
        address: "local" for a new one, "auto" for the one that runs on this machine, or host:port of its head.

    Returns:
        Whether this process had not joined before, and so has to leave.

    Raises:
        UserError: There is none.
    """
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address not in ("local", "auto"):
        _require_a_listener(address)
    options: dict[str, Any] = {"namespace": f"neuroevo-{uuid.uuid4().hex}"}  # of names of actors
    if address == "local":
        options["include_dashboard"] = False
    try:
        with _own_signal_handlers():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        token = "; if it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH as on its machines"
        hint = "" if address == "local" else token
        raise UserError(f"cannot join the Ray cluster at {address!r}: {_first_line(error)}{hint}") from error
    return True


def nodes() -> list[dict[str, Any]]:
    """What Ray knows of the cluster's machines, those that it has lost among them."""
    return list(ray.nodes())  # type: ignore[no-untyped-call]


def leave() -> None:
    """Leaves the cluster; one of this machine alone ends."""
    with _own_signal_handlers():
        ray.shutdown()


def reason_of(error: Exception) -> str:
    """Why a call of a player failed, in a line."""
    if isinstance(error, RayTaskError):
        cause = error.cause if error.cause is not None else error
        return _first_line(cause) if isinstance(cause, UserError) else f"{type(cause).__name__}: {_first_line(cause)}"
    if isinstance(error, RayActorError):
        return "its process has died or cannot be reached"
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def kill(actor: Any) -> None:
    """Ends an actor that may have ended."""
    with suppress(RayError, ValueError):
        ray.kill(actor)


def _require_a_listener(address: str) -> None:
    where = host_and_port(address)
    if where is None:
        raise UserError(f"cluster.address is {address!r}, expected local, auto or HOST:PORT")
    try:
        socket.create_connection(where, _CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or error
        raise UserError(f"cannot join the Ray cluster at {address!r}: {reason}") from error


@contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Keeps this process's signal handlers, which Ray replaces."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(ValueError, TypeError):  # not the main thread; a handler that is not Python's
                signal.signal(number, handler)
