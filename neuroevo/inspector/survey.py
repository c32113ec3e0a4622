"""Incrementally read data of all generations of a run: parents, fitness, points, and means of populations."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.statistics import pareto_front
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.projection import Projection


@dataclass
class Survey:
    """Data of a run's generations up to the last refresh().

    Attributes:
        run: The run.
        projection: The projection of its members to points.
        parents: Generation and index of each member's parent per generation, int32 [N, 2], (-1, -1) without a parent;
            None if the generation is not stored.
        fitness: Fitness of the members per generation, float64 [N]; None if not stored.
        points: Projected points of the members per generation, [N, 2]; None if not stored.
        mean: Mean point of each generation, [x, y]; NaN if unknown.
        best: Point of the fittest member of each generation, [x, y]; NaN if unknown.
    """

    run: InspectedRun
    projection: Projection
    parents: list[np.ndarray | None] = field(default_factory=list)
    fitness: list[np.ndarray | None] = field(default_factory=list)
    points: list[np.ndarray | None] = field(default_factory=list)
    mean: list[np.ndarray] = field(default_factory=list)
    best: list[np.ndarray] = field(default_factory=list)

    def refresh(self) -> None:
        """Read new generations, or all generations if the run was resumed from an earlier state.

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
        """Return the members that joined the Pareto front of fitness and cost (the x axis) in their generation.

        Returns:
            Generations of the members, int32 [F] ascending, and their points, [F, 2].
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
        """Return the fitness and the point [2] of a member. UserError: it is not stored."""
        fitness, points = self.fitness[generation : generation + 1], self.points[generation : generation + 1]
        for values, places in zip(fitness, points, strict=True):
            if values is not None and places is not None and index < len(values):
                return float(values[index]), places[index]
        raise UserError(f"member {index} of generation {generation} is not stored in {self.run.path}")
