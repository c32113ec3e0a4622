"""Options shared by commands, and conversion of exceptions and signals into messages and exit codes."""

from __future__ import annotations

import inspect
import math
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from neuroevo.cli import paths
from neuroevo.core.errors import DiskError, EnvironmentFailure, UserError, shortened
from neuroevo.core.user_module import users_frames
from neuroevo.system.console import mute, output_is_unread

_LONGEST_MESSAGE = 40_000  # characters; all problems of a configuration or an environment's traceback may be long
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback when a command fails.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as a JSON object on one line.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Allow external code and models referenced by a run that you did not create; see docs/security.md.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the configuration, such as training.seed=3.",
        autocompletion=paths.keys,
    ),
]


def finite(value: float | None) -> float | None:
    """Check that the value of a numeric option is finite; for use as the option's callback.

    Args:
        value: The number, or None if the option is not given.

    Returns:
        The same value.

    Raises:
        typer.BadParameter: The number is infinite or NaN.
    """
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number")
    return value


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, which ends a command as Ctrl-C does, but with exit code 143."""

    number, word = signal.SIGTERM, "terminated"


class HungUp(Terminated):
    """Raised on SIGHUP, which is sent when the terminal closes, for example at the end of an ssh session."""

    number, word = signal.SIGHUP, "hung up"


@contextmanager
def reported_errors(debug: bool = False) -> Iterator[None]:
    """Turn an exception raised in the block into a message on standard error and an exit code.

    If the reader of standard output has closed it, the command ends without a message.

    Args:
        debug: Whether to print the traceback of errors too.

    Raises:
        typer.Exit: The block raised an exception; neuroevo.cli documents the values of `exit_code`.
    """
    try:
        yield
        print(end="", flush=True)
    except (typer.Exit, typer.Abort):
        raise
    except BaseException as error:
        if isinstance(error, BrokenPipeError) and output_is_unread():  # such as `head`, which closes its input early
            mute()
            raise typer.Exit(128 + signal.SIGPIPE) from None
        code, message = _outcome(_interrupt_behind(error) or error, debug)
        if code in (1, 2) and debug:
            traceback.print_exc()
        elif code in (1, 2) and (theirs := users_frames(error)):
            print("Traceback of your own code:\n", *traceback.format_list(theirs), sep="", end="", file=sys.stderr)
    else:
        return
    with suppress(OSError):  # the pipe or the terminal is closed
        print(f"neuroevo: {shortened(message, _LONGEST_MESSAGE)}", file=sys.stderr, flush=True)
    raise typer.Exit(code)


def _outcome(error: BaseException, debug: bool) -> tuple[int, str]:
    """Return the exit code and the message of an error."""
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
    """Find the interrupt that caused an error: Python turns one in a class body into a RuntimeError."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__
    return cause


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Make SIGTERM raise Terminated and SIGHUP raise HungUp during the block.

    Enter it in the main thread, where the exceptions are raised. If SIGHUP is already ignored, as under nohup, it stays
    ignored. If a library such as Ray replaces them by a plain KeyboardInterrupt, they are raised instead of it.
    """
    raised: list[type[Terminated]] = []
    kinds = {signal.SIGTERM: Terminated}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        kinds[signal.SIGHUP] = HungUp

    def terminate(number: int, _: object) -> None:
        # When a terminal closes, both the kernel and the shell send SIGHUP, and some programs send SIGHUP after
        # SIGTERM: the second signal must not interrupt the clean-up that the first one started.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        raised.append(kinds[signal.Signals(number)])
        raise raised[-1]

    before = {number: signal.signal(number, terminate) for number in kinds}
    try:
        yield
    except KeyboardInterrupt as interrupt:
        if raised and not isinstance(interrupt, Terminated):
            raise raised[0](*interrupt.args) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def show_whole_summaries(app: typer.Typer) -> None:
    """Make --help show the complete first paragraph of each command's help, which click would truncate.

    Args:
        app: The application, with all of its commands registered.
    """
    for command in app.registered_commands:
        help_text = inspect.getdoc(command.callback) or ""
        command.short_help = " ".join(help_text.partition("\n\n")[0].split())
    for group in app.registered_groups:
        if group.typer_instance is not None:
            show_whole_summaries(group.typer_instance)


def print_section(title: str, values: dict[str, Any]) -> None:
    """Print values as indented lines under a title.

    Args:
        title: The first line, without its colon.
        values: Values to print by name, one per line; the items of a list or tuple are joined with commas.
    """
    print(f"{title}:")
    for key, value in values.items():
        print(f"  {key}: {', '.join(map(str, value)) or 'none' if isinstance(value, (list, tuple)) else value}")
