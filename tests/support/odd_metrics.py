"""An algorithm of a user's own whose metrics have names that CSV must quote."""

from __future__ import annotations

from collections.abc import Mapping

from neuroevo.algorithms.ga import GA, GAState
from neuroevo.core.settings import settings

NAME = "tests.support.odd_metrics:OddMetrics"
METRICS = ("a,b", 'the "best" of 5', "two\rlines", "late, and\nnot always")


@settings
class OddMetrics(GA):
    """A genetic algorithm with metrics of such names; the last of them is not there in the first two generations."""

    def metrics(self, before: GAState, after: GAState) -> Mapping[str, float | None]:
        values = {name: after.generation + index / 4 for index, name in enumerate(METRICS)}
        return values if after.generation > 2 else {name: values[name] for name in METRICS[:-1]}
