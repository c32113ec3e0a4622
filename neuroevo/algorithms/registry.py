"""Look up an algorithm by its name in a configuration: a registered name, or module:class for a user's class."""

from __future__ import annotations

from inspect import isabstract
from typing import TypeGuard

from pydantic.dataclasses import is_pydantic_dataclass

from neuroevo.algorithms.ars import ARS
from neuroevo.algorithms.base import Algorithm, State
from neuroevo.algorithms.canonical_es import CanonicalES
from neuroevo.algorithms.cma_es import CMAES
from neuroevo.algorithms.es import ES
from neuroevo.algorithms.evosax import PREFIX, evosax_algorithm
from neuroevo.algorithms.ga import GA
from neuroevo.algorithms.ga_ns import GANS
from neuroevo.algorithms.low_rank_es import LowRankES
from neuroevo.algorithms.map_elites import MAPElites
from neuroevo.algorithms.me_es import MEES
from neuroevo.algorithms.neat import NEAT
from neuroevo.algorithms.ns_es import NSES, NSRAES, NSRES
from neuroevo.algorithms.pgpe import PGPE
from neuroevo.algorithms.random_search import RandomSearch
from neuroevo.algorithms.regularized_evolution import RegularizedEvolution
from neuroevo.algorithms.ribs import Ribs
from neuroevo.algorithms.sep_cma_es import SepCMAES
from neuroevo.algorithms.snes import SNES
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean
from neuroevo.core.user_module import imported, names

ALGORITHMS: dict[str, type[Algorithm]] = {
    "ars": ARS,
    "canonical_es": CanonicalES,
    "cma_es": CMAES,
    "es": ES,
    "ga": GA,
    "ga_ns": GANS,
    "low_rank_es": LowRankES,
    "map_elites": MAPElites,
    "me_es": MEES,
    "neat": NEAT,
    "ns_es": NSES,
    "nsr_es": NSRES,
    "nsra_es": NSRAES,
    "pgpe": PGPE,
    "random_search": RandomSearch,
    "regularized_evolution": RegularizedEvolution,
    "ribs": Ribs,
    "sep_cma_es": SepCMAES,
    "snes": SNES,
}


NAMES = f"{', '.join(ALGORITHMS)}, {PREFIX}NAME, or module:class of your own"
"""The names that a configuration may use, for messages."""


def find_algorithm(name: object) -> type[Algorithm]:
    """Return the class of an algorithm.

    Args:
        name: The value of the key algorithm.name, not validated yet and therefore of any type.

    Returns:
        The class.

    Raises:
        ConfigError: No such class exists, or it is not an algorithm; a problem of the key algorithm.name.
    """
    if isinstance(name, str) and name in ALGORITHMS:
        return ALGORITHMS[name]
    try:
        if isinstance(name, str) and name.startswith(PREFIX):
            return evosax_algorithm(name.removeprefix(PREFIX))
        if isinstance(name, str) and ":" in name:
            return _own(name)
        hint = did_you_mean(name, ALGORITHMS) if isinstance(name, str) else ""
        raise UserError(f"expected one of {NAMES}{hint}")
    except UserError as error:
        raise ConfigError([Problem("algorithm.name", str(error), name)]) from error.__cause__


def _own(name: str) -> type[Algorithm]:
    parts = names(name)
    if parts is None:
        raise UserError("expected module:class, such as experiments.examples.cma_es:CMAES")
    module_name, class_name = parts
    module = imported(module_name)
    kind = getattr(module, class_name, None)
    if not isinstance(kind, type):
        known = [name for name, value in vars(module).items() if _is_algorithm(value) and not isabstract(value)]
        where = getattr(module, "__file__", None) or "a folder"
        has = f"expected one of {', '.join(known)}" if known else "expected an algorithm, but it defines no algorithms"
        raise UserError(f"{module_name} ({where}) has no class {class_name}: {has}")
    if not _is_algorithm(kind):
        methods = ", ".join(sorted(Algorithm.__abstractmethods__))
        raise UserError(f"{class_name} is not an algorithm: expected a subclass of {_NAME} with {methods}")
    missing = ", ".join(sorted(kind.__abstractmethods__))
    if missing:
        raise UserError(f"{class_name} lacks {missing}: expected every abstract method of its base class")
    decorated = is_pydantic_dataclass(kind)
    if not decorated:
        expected = "expected a class decorated with neuroevo.core.settings.settings"
        raise UserError(f"{class_name} is not decorated: {expected}")
    state: object = kind.state_type
    if state is State or not (isinstance(state, type) and issubclass(state, State)):
        raise UserError(f"{class_name}.state_type: expected a frozen dataclass derived from {State.__module__}.State")
    return kind


_NAME = f"{Algorithm.__module__}.Algorithm"


def _is_algorithm(value: object) -> TypeGuard[type[Algorithm]]:
    return isinstance(value, type) and issubclass(value, Algorithm)
