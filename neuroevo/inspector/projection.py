"""Projection of members to points of the population's cloud, by behavior, principal components or fitness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuroevo.analysis.curves import drawn
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.networks.grafting import cost
from neuroevo.runs.members import Members

_SAMPLED_GENERATIONS, _SAMPLED_MEMBERS = 24, 256  # sample for the components and the ranges of the axes
_MARGIN = 0.05  # on each side, relative to the range
_LARGEST = 1e30  # behaviors are clipped to this before projection: squares overflow, and points are float32
_EQUAL = 1e-9  # relative difference below which values count as equal, since a browser's numbers have 53 bits


@dataclass(frozen=True)
class Projection:
    """Map from members to points; it is the same for all generations, so that the motion of the cloud is visible.

    Attributes:
        kind: "cost": fitness against the multiply-adds of members' networks; "position": x and y; "measures": two other
            measures of behavior; "track": fitness against the first or only measure; "components": the first two
            principal components; "steps": fitness against steps; "index": fitness against the index in the population.
        titles: Titles of the x and y axes.
        low: Lower limits of the axes, float64 [2].
        high: Upper limits of the axes, float64 [2].
        center: Mean behavior, float64 [B]; None except for "components".
        axes: Principal components, float64 [B, 2]; None except for "components".
        measures: Numbers per sample of a behavior, for positions, measures and tracks.
    """

    kind: str
    titles: tuple[str, str]
    low: np.ndarray
    high: np.ndarray
    center: np.ndarray | None = None
    axes: np.ndarray | None = None
    measures: int = 2

    def points(self, members: Members) -> np.ndarray:
        """Return the points of members, float32 [N, 2], or float64 if an axis is fitness; NaN if unknown."""
        if self.kind == "cost":
            return np.stack([_costs(members), drawn(members.fitness)], axis=1)
        if self.kind == "steps":
            return np.stack([members.steps, drawn(members.fitness)], axis=1)
        if members.behaviors is None:
            return np.full((len(members), 2), np.nan, np.float32)
        if self.kind == "track":
            return np.stack([members.behaviors[:, -self.measures], drawn(members.fitness)], axis=1)
        return _place(members.behaviors, self.center, self.axes).astype(np.float32)


def project(run: InspectedRun) -> Projection:
    """Choose and fit the projection of a run.

    Args:
        run: The run.

    Returns:
        The projection, fitted to a sample of the current generations.
    """
    kept = run.members.kept()
    chosen = (
        [kept[at] for at in np.unique(np.linspace(0, len(kept) - 1, _SAMPLED_GENERATIONS).astype(int))] if kept else []
    )
    sample = [members for number in chosen if (members := run.read(number)) is not None]
    if sample and all(each.networks is not None for each in sample):
        found = [(_some(_costs(each)), _some(each.fitness)) for each in sample]
        costs, fitness = (np.concatenate(each) for each in zip(*found, strict=True))
        return Projection("cost", ("multiply-adds, log10", "fitness"), *_range(np.stack([costs, fitness], axis=1)))
    placed = [(_some(each.behaviors), _some(each.fitness)) for each in sample if each.behaviors is not None]
    if placed and len({behaviors.shape[1] for behaviors, _ in placed}) == 1:
        behaviors, scores = (np.concatenate(each).astype(np.float64) for each in zip(*placed, strict=True))
        return _of_behaviors(run, behaviors, scores)
    if sample:
        steps = np.concatenate([_some(each.steps) for each in sample]).astype(np.float64)
        fitness = np.concatenate([_some(each.fitness) for each in sample])
        return Projection("steps", ("steps", "fitness"), *_range(np.stack([steps, fitness], axis=1)))
    fitness = np.concatenate([np.zeros(0), *run.metrics.fitness[-_SAMPLED_GENERATIONS:]])
    last = max((len(each) for each in run.metrics.fitness), default=1) - 1
    ends = [(0.0, value) for value in fitness[:1]] + [(float(last), value) for value in fitness]
    return Projection("index", ("member", "fitness"), *_range(np.array(ends or [(0.0, 0.0)])))


def _of_behaviors(run: InspectedRun, sample: np.ndarray, scores: np.ndarray) -> Projection:
    """Fit a projection to behaviors [P, B] with fitness [P]: the last sample of a trajectory, or components."""
    finite = np.isfinite(sample).all(axis=1)
    known = sample[finite] if finite.any() else np.zeros((1, sample.shape[1]))
    names = [each.name for each in run.config.environment.measures] if run.config is not None else []
    names = names or {1: ["behavior"], 2: ["x", "y"]}.get(sample.shape[1], [])  # for runs that are not trusted
    if len(names) in (1, 2):
        places = known[:, -len(names) :]
        if len(names) == 1 or (np.ptp(places[:, 1]) == 0 and len(places) == finite.sum() > 1):  # a robot on rails
            track = np.stack([places[:, 0], scores[finite] if finite.any() else [0.0]], axis=1)
            return Projection("track", (names[0], "fitness"), *_range(track), measures=len(names))
        kind = "position" if names == ["x", "y"] else "measures"
        return Projection(kind, (names[0], names[1]), *_range(places))
    known = np.clip(known, -_LARGEST, _LARGEST)
    center = known.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((known - center).T))
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])  # deterministic signs
    total = max(float(values.sum()), 1e-300)
    shares = [f"{place} component ({max(value, 0.0) / total:.0%} of the variance)" for place, value in
              zip(("first", "second"), values[::-1], strict=False)]  # fmt: skip
    return Projection("components", (shares[0], shares[1]), *_range(_place(known, center, axes)), center, axes)


def _place(behaviors: np.ndarray, center: np.ndarray | None, axes: np.ndarray | None) -> np.ndarray:
    if center is None or axes is None:
        return behaviors[:, -2:]
    return (np.clip(behaviors, -_LARGEST, _LARGEST) - center) @ axes


def _costs(members: Members) -> np.ndarray:
    """Return the logarithm to base 10 of the multiply-adds of members' networks, float64 [N]."""
    known = {text: cost(text).multiply_adds for text in set(members.networks or ())}
    return np.log10([max(known[text], 1) for text in members.networks or ()])


def _some(values: np.ndarray) -> np.ndarray:
    return values[:: max(len(values) // _SAMPLED_MEMBERS, 1)]


def _range(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper limits of the axes, float64 [2] each, for points [P, 2]."""
    points = drawn(points)
    low, high = points.min(axis=0), points.max(axis=0)
    greater = np.maximum(abs(low), abs(high))
    margin = np.where(high - low > greater * _EQUAL, (high - low) * _MARGIN, np.maximum(greater * _MARGIN, 1.0))
    return low - margin, high + margin
