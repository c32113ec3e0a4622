"""What all generations of a run have together: who comes from whom, and where populations were on average."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.statistics import pareto_front
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.projection import Projection


@dataclass
class Survey:
    """Grows with the run.

    Attributes:
        run: Whose generations.
        projection: Where its members are.
        parents: Of each generation, int32 [N, 2], (-1, -1) without a parent; None of one that is not kept.
        fitness: Of each generation, float64 [N]; None likewise.
        points: Of each generation, as the projection has them, [N, 2]; None likewise.
        mean: Where each population was on average, [x, y]; NaN where that is not known.
        best: Where the fittest of each was, likewise.
    """

    run: InspectedRun
    projection: Projection
    parents: list[np.ndarray | None] = field(default_factory=list)
    fitness: list[np.ndarray | None] = field(default_factory=list)
    points: list[np.ndarray | None] = field(default_factory=list)
    mean: list[np.ndarray] = field(default_factory=list)
    best: list[np.ndarray] = field(default_factory=list)

    def refresh(self) -> None:
        """Read the generations that were added; all of them if the run went back to an earlier state.

        Raises:
            UserError: The database is damaged.
        """
        if self.run.kept < len(self.parents):
            for each in (self.parents, self.fitness, self.points, self.mean, self.best):
                each.clear()
        for members in self.run.members.each(len(self.parents)):
            nowhere = np.full(2, np.nan)
            if members is None:
                self.parents.append(None)
                self.fitness.append(None)
                self.points.append(None)
                self.mean.append(nowhere)
                self.best.append(nowhere)
                continue
            points = self.projection.points(members)
            known = points[np.isfinite(points).all(axis=1)]
            self.parents.append(members.parents.astype(np.int32))
            self.fitness.append(members.fitness)
            self.points.append(points)
            self.mean.append(known.mean(axis=0, dtype=np.float64) if len(known) else nowhere)
            self.best.append(points[int(members.fitness.argmax())].astype(np.float64))

    def front(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the members that no earlier one exceeded in fitness at no higher cost, where the x axis is the cost.

        Returns:
            Their generations, int32 [F] ascending, and their points, [F, 2].
        """
        generations, points = [], []
        best = np.zeros((0, 2))
        for generation, found in enumerate(self.points):
            if found is None:
                continue
            both = np.concatenate([best, found])
            front = pareto_front(both[:, 1], both[:, 0])
            new = both[[place for place in front if place >= len(best)]]
            best = both[front]
            generations += [generation] * len(new)
            points.append(new)
        return np.array(generations, np.int32), np.concatenate([np.zeros((0, 2)), *points])

    def member(self, generation: int, index: int) -> tuple[float, np.ndarray]:
        """Return the fitness and the point [2] of a member. UserError: it is not kept."""
        fitness, points = self.fitness[generation : generation + 1], self.points[generation : generation + 1]
        for values, places in zip(fitness, points, strict=True):
            if values is not None and places is not None and index < len(values):
                return float(values[index]), places[index]
        raise UserError(f"member {index} of generation {generation} is not kept in {self.run.path}")
