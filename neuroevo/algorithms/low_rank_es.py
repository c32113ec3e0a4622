"""Evolution strategies of low rank (Sarkar et al. 2025, "Evolution Strategies at the Hyperscale", arXiv 2511.16652).

As evolution strategies (es.py), but the noise of each matrix [m, n] of a network is A B^T / sqrt(r) with A [m, r] and
B [n, r], standard normal: a pair costs (m + n) r numbers in place of m n, and all of a population share the center's
weights as they are. What is no matrix, biases and their like, has noise of its own. The gradient's estimate is the
fitness-weighted sum of these products, which is of full rank. As r grows the noise approaches that of es.py.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from neuroevo.algorithms.es import ES
from neuroevo.core.genome import MAX_RANK, LowRank
from neuroevo.core.settings import settings, whole


@settings
class LowRankES(ES):
    """Evolution strategies whose noise is of low rank."""

    rank: Annotated[int, BeforeValidator(whole), Field(ge=1, le=MAX_RANK)] = 1
    """Rank of each matrix's noise (r), in [1, 64]. 1 suffices for control."""

    @property
    def mutation_kind(self) -> LowRank:
        """The kind of the pairs' noise."""
        return LowRank(self.rank)
