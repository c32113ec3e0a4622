"""Many runs: suites of configurations, games and seeds, sweeps of values by Ray Tune, and the reports on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neuroevo.sweeps.tune.trainable import Trainable

__all__ = ["Trainable"]


def __getattr__(name: str) -> Any:
    if name != "Trainable":  # it imports Ray, which suites do without
        raise AttributeError(f"module 'neuroevo.sweeps' has no attribute '{name}', expected Trainable")
    from neuroevo.sweeps.tune.trainable import Trainable

    return Trainable
