"""How long JAX has traced and compiled in this process, as JAX itself reports it."""

from __future__ import annotations

import math
import time

from jax import monitoring

_PREFIX = "/jax/core/compile/"  # of tracing, lowering and compiling; one is often reported within another


class CompileClock:
    """Adds up from its making on."""

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []
        monitoring.register_event_duration_secs_listener(self._note)

    def seconds(self, until: float = math.inf) -> float:
        """Wall time during which something was traced or compiled, in seconds.

        Args:
            until: A time of time.perf_counter(); what came later does not count.
        """
        total = counted = 0.0
        for begun, ended in sorted(self._intervals):
            ended = min(ended, until)
            total += max(ended - max(begun, counted), 0.0)
            counted = max(counted, ended)
        return total

    def _note(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event.startswith(_PREFIX):
            now = time.perf_counter()
            self._intervals.append((now - duration_secs, now))
