"""What all commands share: options, and the way from an exception to a message and an exit code."""

from __future__ import annotations

import math
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from neuroevo.core.errors import DiskError, EnvironmentFailure, UserError
from neuroevo.system.console import mute, nobody_reads

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line that is one JSON object.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key, such as training.seed=3.")
]


def finite(value: float | None) -> float | None:
    """Callback of an option that takes a number, such as seconds."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number")
    return value


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does, with its own exit code."""

    number, word = signal.SIGTERM, "terminated"


class HungUp(Terminated):
    """SIGHUP, which a terminal sends that is closed, an ssh session's for example."""

    number, word = signal.SIGHUP, "hung up"


@contextmanager
def reported_errors(debug: bool = False) -> Iterator[None]:
    """Turns exceptions into one clear message on standard error and an exit code; says nothing where it is only that
    nobody reads standard output any more."""
    try:
        yield
        print(end="", flush=True)
    except (typer.Exit, typer.Abort):
        raise
    except BaseException as error:
        if isinstance(error, BrokenPipeError) and nobody_reads():  # as with head, which has what it wants
            mute()
            raise typer.Exit(128 + signal.SIGPIPE) from None
        code, message = _said(_interrupt_behind(error) or error, debug)
        if code in (1, 2) and debug:
            traceback.print_exc()
    else:
        return
    with suppress(OSError):  # nobody reads it, or the terminal is closed
        print(f"neuroevo: {message}", file=sys.stderr, flush=True)
    raise typer.Exit(code)


def _said(error: BaseException, debug: bool) -> tuple[int, str]:
    """Exit code and message."""
    if isinstance(error, Terminated):
        return 128 + error.number, f"{error.word}{error}"
    if isinstance(error, KeyboardInterrupt):
        return 130, f"interrupted{error}"
    if isinstance(error, UserError):
        return 2, str(error)
    if isinstance(error, (DiskError, EnvironmentFailure)):
        return 1, str(error)
    if isinstance(error, Exception):
        hint = "" if debug else " (--debug shows where)"
        return 1, f"failed: {type(error).__name__}: {error}{hint}"
    raise error


def _interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """The interrupt that is the cause of an error: Python makes RuntimeErrors of those that come in a class's body."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return cause


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Inside, SIGTERM raises Terminated in the main thread, where this must be called; and SIGHUP raises HungUp, unless
    it is ignored, as nohup has it."""
    kinds = {signal.SIGTERM: Terminated}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        kinds[signal.SIGHUP] = HungUp

    def terminate(number: int, _: object) -> None:
        # The kernel and the shell each tell of a closed terminal, and some that send SIGTERM send SIGHUP after it: the
        # second is not to break off what the first has begun.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        raise kinds[signal.Signals(number)]

    before = {number: signal.signal(number, terminate) for number in kinds}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def print_section(title: str, values: dict[str, Any]) -> None:
    """Prints values as indented lines under a title."""
    print(f"{title}:")
    for key, value in values.items():
        print(f"  {key}: {', '.join(map(str, value)) or 'none' if isinstance(value, (list, tuple)) else value}")
