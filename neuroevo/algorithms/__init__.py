"""The algorithms by name. A new one is a file here and a line in this dict; one of your own elsewhere needs neither
(neuroevo/algorithm_names.py).
"""

from __future__ import annotations

from neuroevo.algorithms.algorithm import Algorithm
from neuroevo.algorithms.es import ES
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.ga_ns import GANS
from neuroevo.algorithms.ns_es import NSES, NSRES
from neuroevo.algorithms.random_search import RandomSearch

ALGORITHMS: dict[str, type[Algorithm]] = {
    "es": ES,
    "ga": GA,
    "ga_ns": GANS,
    "ns_es": NSES,
    "nsr_es": NSRES,
    "random_search": RandomSearch,
}
