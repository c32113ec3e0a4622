"""The command `neuroevo`.

Exit codes: 0 for success, 1 for a failure, 2 for a usage error, 130 after Ctrl-C, 143 after SIGTERM, 129 after
SIGHUP, and 141 if the reader of standard output has closed it.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from neuroevo.cli import (
    bench,
    cluster,
    config,
    evaluate,
    export,
    hub,
    info,
    inspect,
    plot,
    render,
    sweep,
    train,
)
from neuroevo.cli.common import show_whole_summaries
from neuroevo.core.version import VERSION
from neuroevo.rollout.tensorflow_import import skip_optional_imports
from neuroevo.system.safe_path import safe_variables

app = typer.Typer(
    help="Train deep networks by evolution on Atari, MuJoCo and other environments.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for commands in (train, evaluate, export, render, plot, inspect, hub, sweep, cluster, config, info, bench):
    commands.register(app)
show_whole_summaries(app)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"neuroevo {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[  # noqa: ARG001 - handled by the option's callback
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line in sys.argv; the entry point of the console script."""
    os.environ.update(safe_variables())
    skip_optional_imports()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does: a path may not be encodable
    try:
        app()
    except (SystemExit, KeyboardInterrupt) as end:
        code = 130 if isinstance(end, KeyboardInterrupt) else end.code
        if code != 130:
            raise
        # If Ctrl-C arrives while exec() runs source text, as it does when a dataclass is created, Python 3.11 dies of
        # SIGINT instead of returning an exit code. All files are closed by now, so only the streams need flushing.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
