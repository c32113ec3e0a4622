"""Evolution strategies of low rank (Sarkar et al. 2025, "Evolution Strategies at the Hyperscale", arXiv 2511.16652).

Evolution strategies (es.py) in which the noise of each weight matrix [m, n] is A B^T / sqrt(r), with A [m, r] and
B [n, r] standard normal. A pair takes (m + n) r random numbers instead of m n, and all members of a population share
the center's weights. Biases and other vectors have independent noise. The gradient estimate is the fitness-weighted sum
of these products and has full rank. With growing r, the noise approaches that of es.py.
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
        """Low-rank noise of the setting rank."""
        return LowRank(self.rank)
