"""Quality diversity with pyribs (Tjanaka et al. 2023, https://arxiv.org/abs/2303.00191), for small networks.

pyribs's archives keep the fittest weight vectors of diverse behaviors, and its emitters propose new vectors:
CMA-ME (Fontaine et al. 2020, https://arxiv.org/abs/1912.02400), CMA-MAE (Fontaine and Nikolaidis 2023,
https://arxiv.org/abs/2205.10752), MAP-Elites with iso+line variation (Vassiliades and Mouret 2018,
https://arxiv.org/abs/1804.03906), and more. This package evaluates the vectors on games and robots. An archive stores
the vector of every elite, so networks may have up to 20,000 weights; map_elites supports large networks.

A state holds all results passed to pyribs, and a resumed run passes them to pyribs again: see ask_tell.py.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from neuroevo.algorithms.ask_tell import AskTell, Sampler
from neuroevo.algorithms.cells import CellSettings
from neuroevo.core.errors import UserError
from neuroevo.core.extras import require
from neuroevo.core.problems import Problem, did_you_mean, refuse
from neuroevo.core.settings import Count, Positive, settings

MAX_DIMENSION = 20_000
_ARCHIVES = {"grid": "GridArchive", "cvt": "CVTArchive", "proximity": "ProximityArchive", "dns": "DNSArchive"}
_RANKERS = {"proximity": "nov", "dns": "obj"}  # rankers of CMA-ES for archives that do not report improvements
_EMITTERS = {  # class, and its argument for sigma
    "evolution_strategy": ("EvolutionStrategyEmitter", "sigma0"),
    "iso_line": ("IsoLineEmitter", "iso_sigma"),
    "gaussian": ("GaussianEmitter", "sigma"),
}


@settings
class Ribs(CellSettings, AskTell):
    """Quality diversity with an archive and emitters of pyribs."""

    population: Count = 180
    """Genomes per generation, divided equally among the emitters."""
    sigma: Positive = 0.1
    """Standard deviation of the emitters' noise, or its initial value if they adapt it."""
    emitters: Count = 5
    """Number of emitters, which propose genomes."""
    emitter: Literal["evolution_strategy", "iso_line", "gaussian"] = "evolution_strategy"
    """Kind of the emitters; evolution_strategy, with CMA-ES in each emitter, makes this CMA-ME."""
    emitter_options: Annotated[dict[str, Any], Field(strict=True)] = field(default_factory=dict)
    """Other arguments of the emitters, as in pyribs: {es = "sep_cma_es", ranker = "imp", restart_rule = "basic"}."""
    archive_kind: Literal["grid", "cvt", "proximity", "dns"] = "grid"
    """Kind of the archive: "grid"; "cvt", a centroidal Voronoi tessellation with as many cells; "proximity", which
    accepts sufficiently novel genomes; or "dns", dominated novelty search with as many elites as the grid has cells."""
    archive_options: Annotated[dict[str, Any], Field(strict=True)] = field(default_factory=dict)
    """Other arguments of the archive, as in pyribs. {learning_rate = 0.01, threshold_min = 0.0} with a grid makes this
    CMA-MAE, which keeps its elites in a second archive."""

    def __post_init__(self) -> None:
        require("illuminate", "ribs")
        if self.population % self.emitters:
            expected = f"expected a multiple of the {self.emitters} emitters"
            refuse([Problem("population", expected, self.population)])
        for key in ("emitter_options", "archive_options"):
            if options := getattr(self, key):  # without options, skip importing pyribs, which takes seconds
                kind = self._kind(key)
                known = inspect.signature(kind).parameters
                reason = f"pyribs's {kind.__name__} has no such argument"
                refuse(
                    Problem(f"{key}.{name}", f"{reason}{did_you_mean(name, known)}")
                    for name in options
                    if name not in known
                )

    def start(self, theta: np.ndarray, seed: int) -> Illumination:
        """Make the archive and the emitters, whose first vectors are sampled around theta.

        Raises:
            UserError: The network has too many weights.
            ConfigError: pyribs rejects an option.
        """
        from ribs.schedulers import Scheduler

        if len(theta) > MAX_DIMENSION:
            reason = f"the network has {len(theta):,} weights, expected at most {MAX_DIMENSION:,} for pyribs"
            raise UserError(f"{reason}, whose archives hold vectors; map_elites has no limit")
        seeds = np.random.SeedSequence(seed).generate_state(self.emitters + 1, np.uint32).tolist()
        archive = self._made("archive_options", self._archive_arguments(len(theta), seeds[0]))
        own = {"x0": theta, "batch_size": self.population // self.emitters, _EMITTERS[self.emitter][1]: self.sigma}
        if self.emitter == "evolution_strategy" and self.archive_kind in _RANKERS:
            own["ranker"] = _RANKERS[self.archive_kind]
        emitters = [self._made("emitter_options", {"archive": archive, **own, "seed": each}) for each in seeds[1:]]
        elites = None
        if "learning_rate" in self.archive_options:
            elites = self._kind("archive_options")(**self._archive_arguments(len(theta), seeds[0]))
        return Illumination(Scheduler(archive, emitters, elites), np.array(self.low))

    def _kind(self, key: str) -> Any:
        """Return the pyribs class whose arguments the setting `key` holds."""
        from ribs import archives, emitters

        if key == "archive_options":
            return getattr(archives, _ARCHIVES[self.archive_kind])
        return getattr(emitters, _EMITTERS[self.emitter][0])

    def _archive_arguments(self, dimension: int, seed: int) -> dict[str, Any]:
        ranges, shape = list(zip(self.low, self.high, strict=True)), self.grid.shape
        space: dict[str, Any] = {
            "grid": {"dims": shape, "ranges": ranges},
            "cvt": {"centroids": math.prod(shape), "ranges": ranges},
            "proximity": {"measure_dim": len(shape), "k_neighbors": 15},
            "dns": {"measure_dim": len(shape), "k_neighbors": 15, "capacity": math.prod(shape)},
        }
        return {"solution_dim": dimension, "seed": seed, **space[self.archive_kind]}

    def _made(self, key: str, own: Mapping[str, Any]) -> Any:
        """Make a pyribs object. ConfigError: pyribs rejects an option."""
        kind, options = self._kind(key), getattr(self, key)
        try:
            return kind(**{**own, **options})
        except (TypeError, ValueError, KeyError) as error:
            refuse([Problem(f"algorithm.{key}", f"rejected by pyribs's {kind.__name__}: {error}", options)])


class Illumination(Sampler):
    """Sampler that wraps a pyribs scheduler."""

    def __init__(self, scheduler: Any, somewhere: np.ndarray):
        """Wrap a scheduler; `somewhere` is the behavior to report for vectors with unknown behavior, [B]."""
        self._scheduler, self._somewhere = scheduler, somewhere
        self._elites = scheduler.result_archive

    def ask(self) -> np.ndarray:
        """Return the emitters' vectors, [N, D]."""
        return self._scheduler.ask()

    def tell(self, fitness: np.ndarray, behaviors: np.ndarray | None) -> None:
        """Add the vectors to the archive. Vectors with unknown behavior get the lowest fitness of the generation."""
        assert behaviors is not None
        unknown = np.isnan(behaviors).any(axis=1)
        told = np.where(unknown, fitness.min(), fitness)
        self._scheduler.tell(told, np.where(unknown[:, None], self._somewhere, behaviors))

    def mean(self) -> np.ndarray | None:
        """Return the fittest vector, [D]; None if the archive does not record it."""
        best = self._elites.best_elite
        return None if best is None else best["solution"]

    def metrics(self) -> Mapping[str, float]:
        """Return the number of elites, the share of filled cells where the archive has cells, and the QD score."""
        stats = self._elites.stats
        return {"elites": stats.num_elites, "coverage": stats.coverage, "qd_score": stats.qd_score}
