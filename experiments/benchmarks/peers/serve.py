"""Server loop of a peer's program: it initializes once, then measures on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable


def serve(measure: Callable[[float], dict[str, object]]) -> None:
    """Print "ready", then for each number of seconds on standard input one JSON line: measure(seconds)."""
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(float(line))), flush=True)
