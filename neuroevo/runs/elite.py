"""The elite of a generation."""

from __future__ import annotations

from dataclasses import dataclass

from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer


@dataclass(frozen=True)
class Elite:
    """The best genome of a generation.

    Attributes:
        genome: The genome.
        normalizer: Normalizer of its networks' observations; None: they are not normalized.
    """

    genome: Genome
    normalizer: Normalizer | None = None
