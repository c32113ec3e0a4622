"""The reference of the command line, made from the application itself: what --help says, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from docs.hooks.settings_tables import code, escaped


def commands(app: typer.Typer, name: str) -> str:
    """Returns Markdown with a section for each command.

    Args:
        app: The application.
        name: What the program is called.
    """
    group = typer.main.get_command(app)
    context = group.context_class(group, info_name=name)
    return "\n\n".join(_sections(group, context, 2))


def _sections(group: Any, context: Any, level: int) -> Iterator[str]:
    """Yields the parts of each command's section; a group's own commands follow it, a level below."""
    for name, command in group.commands.items():
        own = command.context_class(command, info_name=name, parent=context)
        yield f"{'#' * level} {own.command_path}"
        yield escaped(" ".join((command.help or "").split()))
        if getattr(command, "commands", None):
            yield from _sections(command, own, level + 1)
            continue
        usage = " ".join([own.command_path, *command.collect_usage_pieces(own)])
        yield f'<p class="usage"><code>{usage.replace("<", "&lt;")}</code></p>'
        records = [each.get_help_record(own) for each in command.get_params(own)]
        rows = [f"| {code(shown)} | {escaped(says)} |" for shown, says in filter(None, records)]
        yield "\n".join(["| argument or option | meaning |", "|---|---|", *rows])
