"""The algorithms by name. A new one is a file here and a line in this dict."""

from __future__ import annotations

from neuroevo.algorithms.algorithm import Algorithm
from neuroevo.algorithms.es import ES
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.random_search import RandomSearch

ALGORITHMS: dict[str, type[Algorithm]] = {
    "es": ES,
    "ga": GA,
    "random_search": RandomSearch,
}
