"""Description of a run for the page: settings, provenance, log and warnings."""

from __future__ import annotations

from typing import Any

from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.payload import plain

_WARNS = (" WARNING ", " ERROR ", " CRITICAL ")


def about(run: InspectedRun) -> dict[str, Any]:
    """Describe a run.

    Args:
        run: The run.

    Returns:
        `settings`, the tables of its configuration; `info`, its provenance; `log`, the last lines of its log; and
        `warnings`, warnings in the log and problems of its files.
    """
    log = run.log()
    wrong = [each for each in (run.why_not, run.metrics.problem) if each]
    return {
        "path": str(run.path),
        "settings": plain(run.settings()),
        "info": plain(run.info()),
        "log": log,
        "warnings": wrong + [line for line in log if any(word in line for word in _WARNS)],
    }
