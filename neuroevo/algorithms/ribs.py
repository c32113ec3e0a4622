"""Quality diversity by pyribs (Tjanaka et al. 2023, https://arxiv.org/abs/2303.00191), for small networks.

The library's archives keep the fittest vectors of weights of all kinds of behavior, and its emitters propose new ones:
CMA-ME (Fontaine et al. 2020, https://arxiv.org/abs/1912.02400), CMA-MAE (Fontaine and Nikolaidis 2023,
https://arxiv.org/abs/2205.10752), MAP-Elites with iso+line variation (Vassiliades and Mouret 2018,
https://arxiv.org/abs/1804.03906), and more. Here they see real games and robots. An archive holds as many vectors as it
has elites, so networks may have up to about 20,000 weights; map_elites is for large ones.

A state holds what the library was told, and a resumed run tells it all of that again: see ask_tell.py.
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
_RANKERS = {"proximity": "nov", "dns": "obj"}  # of CMA-ES where the archive does not say how much a vector improves it
_EMITTERS = {  # and what they call sigma
    "evolution_strategy": ("EvolutionStrategyEmitter", "sigma0"),
    "iso_line": ("IsoLineEmitter", "iso_sigma"),
    "gaussian": ("GaussianEmitter", "sigma"),
}


@settings
class Ribs(CellSettings, AskTell):
    """An archive of pyribs with emitters."""

    population: Count = 180
    """Genomes per generation, as many of each emitter."""
    sigma: Positive = 0.1
    """Standard deviation of the emitters' noise, or the one at the start where they adapt it."""
    emitters: Count = 5
    """How many emitters propose genomes."""
    emitter: Literal["evolution_strategy", "iso_line", "gaussian"] = "evolution_strategy"
    """Their kind; with the first, CMA-ES each, this is CMA-ME."""
    emitter_options: Annotated[dict[str, Any], Field(strict=True)] = field(default_factory=dict)
    """Their other arguments, by pyribs's names, such as {es = "sep_cma_es", ranker = "imp", restart_rule = "basic"}."""
    archive_kind: Literal["grid", "cvt", "proximity", "dns"] = "grid"
    """What keeps the elites: the cells of a grid, as many cells of a centroidal Voronoi tessellation, all that is far
    enough from the rest, or as many as there are cells by dominated novelty search."""
    archive_options: Annotated[dict[str, Any], Field(strict=True)] = field(default_factory=dict)
    """Its other arguments, by pyribs's names; {learning_rate = 0.01, threshold_min = 0.0} of a grid makes it CMA-MAE,
    whose elites are kept in a second archive."""

    def __post_init__(self) -> None:
        require("illuminate", "ribs")
        if self.population % self.emitters:
            expected = f"expected a multiple of the {self.emitters} emitters"
            refuse([Problem("population", expected, self.population)])
        for key in ("emitter_options", "archive_options"):
            if options := getattr(self, key):  # importing pyribs takes seconds
                kind = self._kind(key)
                known = inspect.signature(kind).parameters
                reason = f"pyribs's {kind.__name__} has no such argument"
                refuse(
                    Problem(f"{key}.{name}", f"{reason}{did_you_mean(name, known)}")
                    for name in options
                    if name not in known
                )

    def start(self, theta: np.ndarray, seed: int) -> Illumination:
        """Make archive and emitters, whose first vectors are around theta.

        Raises:
            UserError: There are too many weights.
            ConfigError: pyribs refuses an option.
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
        """Return the class of pyribs whose arguments are in a setting."""
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
        """Return an object of pyribs. ConfigError: it refuses an option."""
        kind, options = self._kind(key), getattr(self, key)
        try:
            return kind(**{**own, **options})
        except (TypeError, ValueError, KeyError) as error:
            refuse([Problem(f"algorithm.{key}", f"pyribs's {kind.__name__} refuses it: {error}", options)])


class Illumination(Sampler):
    """A scheduler of pyribs with the methods of a Sampler."""

    def __init__(self, scheduler: Any, somewhere: np.ndarray):
        """Wrap a scheduler; somewhere: a behavior for vectors whose own is not known, [B]."""
        self._scheduler, self._somewhere = scheduler, somewhere
        self._elites = scheduler.result_archive

    def ask(self) -> np.ndarray:
        """Return the emitters' vectors, [N, D]."""
        return self._scheduler.ask()

    def tell(self, fitness: np.ndarray, behaviors: np.ndarray | None) -> None:
        """Add the vectors to the archive. One whose behavior is not known is told as the worst of its generation."""
        assert behaviors is not None
        unknown = np.isnan(behaviors).any(axis=1)
        told = np.where(unknown, fitness.min(), fitness)
        self._scheduler.tell(told, np.where(unknown[:, None], self._somewhere, behaviors))

    def mean(self) -> np.ndarray | None:
        """Return the fittest vector, [D]; None from an archive that does not remember it."""
        best = self._elites.best_elite
        return None if best is None else best["solution"]

    def metrics(self) -> Mapping[str, float]:
        """Return the archive's number of elites and, where it has cells, the share that is filled; QD-score."""
        stats = self._elites.stats
        return {"elites": stats.num_elites, "coverage": stats.coverage, "qd_score": stats.qd_score}
