"""How a peer's program takes part in a benchmark: it makes everything once, then measures whenever it is asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable


def serve(measure: Callable[[float], dict[str, object]]) -> None:
    """Prints "ready", then for every number of seconds on standard input one JSON line: measure(seconds)."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(float(line))), flush=True)
