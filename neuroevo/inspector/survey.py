"""What all generations of a run have together: who comes from whom, and where populations were on average."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

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
        mean: Where each population was on average, [x, y]; NaN where that is not known.
        best: Where the fittest of each was, likewise.
    """

    run: InspectedRun
    projection: Projection
    parents: list[np.ndarray | None] = field(default_factory=list)
    fitness: list[np.ndarray | None] = field(default_factory=list)
    mean: list[np.ndarray] = field(default_factory=list)
    best: list[np.ndarray] = field(default_factory=list)

    def refresh(self) -> None:
        """Reads the generations that were added; all where the run went back to a checkpoint.

        Raises:
            UserError: The members' file is damaged.
        """
        if self.run.members.generations < len(self.parents):
            for each in (self.parents, self.fitness, self.mean, self.best):
                each.clear()
        for generation in range(len(self.parents), self.run.members.generations):
            members = self.run.read(generation)
            nowhere = np.full(2, np.nan)
            if members is None:
                self.parents.append(None)
                self.fitness.append(None)
                self.mean.append(nowhere)
                self.best.append(nowhere)
                continue
            points = self.projection.points(members)
            known = points[np.isfinite(points).all(axis=1)]
            self.parents.append(members.parents.astype(np.int32))
            self.fitness.append(members.fitness)
            self.mean.append(known.mean(axis=0, dtype=np.float64) if len(known) else nowhere)
            self.best.append(points[int(members.fitness.argmax())].astype(np.float64))
