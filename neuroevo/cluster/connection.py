"""Functions that join and leave a Ray cluster, list its machines and describe failed calls."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError, RayTaskError
from ray.job_config import JobConfig

from neuroevo.core.errors import UserError
from neuroevo.core.settings import host_and_port

_CONNECT_SECONDS = 10.0
Node = Mapping[str, Any]  # a machine, as Ray describes it


def join(address: str) -> bool:
    """Join a Ray cluster, or start one that consists of this machine.

    Args:
        address: "local" for a new cluster, "auto" for the cluster on this machine, or host:port of the cluster's head.

    Returns:
        True if this process had not joined before; the caller then has to leave.

    Raises:
        UserError: The address is invalid, or the cluster cannot be joined.
    """
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address not in ("local", "auto"):
        _require_a_listener(address)
    # Ray puts the driver's working directory first on the workers' path, except for the job of a client.
    options: dict[str, Any] = {"job_config": JobConfig(_client_job=True)}
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


def nodes() -> list[Node]:
    """Return the cluster's machines as Ray describes them, including those that it has lost."""
    return list(ray.nodes())  # type: ignore[no-untyped-call]


def ask_for_nodes() -> Future[list[Node]]:
    """Call nodes() in a thread, because without the cluster's head the call blocks and signals are not handled."""
    answer: Future[list[Node]] = Future()

    def ask() -> None:
        try:
            answer.set_result(nodes())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, name="nodes", daemon=True).start()
    return answer


def is_head(node: Node) -> bool:
    """Return whether a machine is the cluster's head."""
    return "node:__internal_head__" in node["Resources"]


def leave() -> None:
    """Leave the cluster; a local cluster is shut down."""
    with _own_signal_handlers():
        ray.shutdown()


def reason_of(error: Exception) -> str:
    """Return in one line why a call of a player failed."""
    if isinstance(error, RayTaskError):
        cause = error.cause if error.cause is not None else error
        return _first_line(cause) if isinstance(cause, UserError) else f"{type(cause).__name__}: {_first_line(cause)}"
    if isinstance(error, RayActorError):
        return "its process has died or is unreachable"
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


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
    """Keep this process's signal handlers, which Ray replaces."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(ValueError, TypeError):  # not the main thread; a handler that is not Python's
                signal.signal(number, handler)
