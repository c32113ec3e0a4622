"""What all commands share: options, and the way from an exception to a message and an exit code."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from neuroevo.errors import DiskError, UserError

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Json = Annotated[bool, typer.Option("--json", help="End with one line that is one JSON object.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a key, such as training.seed=3.")
]


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does, with its own exit code."""


@contextmanager
def reported_errors(debug: bool = False) -> Iterator[None]:
    """Turns exceptions into one clear message on standard error and an exit code."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except Terminated as error:
        code, message = 128 + signal.SIGTERM, f"terminated{error}"
    except KeyboardInterrupt as error:
        code, message = 130, f"interrupted{error}"
    except UserError as error:
        code, message = 2, str(error)
        _trace(debug)
    except DiskError as error:
        code, message = 1, str(error)
        _trace(debug)
    except Exception as error:
        hint = "" if debug else " (--debug shows where)"
        code, message = 1, f"failed: {type(error).__name__}: {error}{hint}"
        _trace(debug)
    else:
        return
    print(f"neuroevo: {message}", file=sys.stderr, flush=True)
    raise typer.Exit(code)


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Inside, SIGTERM raises Terminated in the main thread, where this must be called."""

    def terminate(*_: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def print_section(title: str, values: dict[str, Any]) -> None:
    """Prints values as indented lines under a title."""
    print(f"{title}:")
    for key, value in values.items():
        print(f"  {key}: {', '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")


def _trace(debug: bool) -> None:
    if debug:
        traceback.print_exc()
