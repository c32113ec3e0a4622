"""Scores of a suite over all of its games: normalized, since games count in points of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from neuroevo.sweeps.status import RunStatus, score
from neuroevo.system.statistics import Summary, interquartile_mean

Scales: TypeAlias = Mapping[str, tuple[float, float]]
"""Of each game, by what it is called in tables, the scores that count as 0 and as 1."""

NO_SCALES: Scales = {}


def last_scores(statuses: Iterable[RunStatus]) -> np.ndarray:
    """Gets the scores of runs.

    Args:
        statuses: The runs.

    Returns:
        The scores of the last elites of those that have one, float64 [n].
    """
    return np.array([score(each.played[-1], each.run) for each in statuses if each.played], np.float64)


@dataclass(frozen=True)
class Aggregate:
    """Normalized scores of one configuration over all of the games that have a scale.

    Attributes:
        config: Label of the configuration.
        games: How many games count.
        iqm: Interquartile mean over all runs of these games, with its interval, stratified by game.
    """

    config: str
    games: int
    iqm: Summary

    def row(self) -> dict[str, Any]:
        """Returns the aggregate as plain values, with None for a value that is not known."""
        return {
            "config": self.config,
            "games": self.games,
            "runs": self.iqm.n,
            "iqm": self.iqm.mean,
            "iqm_low95": self.iqm.low,
            "iqm_high95": self.iqm.high,
        }


def aggregates(statuses: Sequence[RunStatus], scales: Scales) -> list[Aggregate]:
    """Puts the games of each configuration together.

    Args:
        statuses: The runs of a suite.
        scales: Of each game the scores that count as 0 and as 1.

    Returns:
        An aggregate for each configuration; none without scales.
    """
    found = []
    for label in dict.fromkeys(each.run.label for each in statuses if scales):
        samples = []
        for game, (low, high) in scales.items():
            scores = last_scores(each for each in statuses if (each.run.label, each.run.game) == (label, game))
            if len(scores):
                samples.append((scores - low) / (high - low))
        found.append(Aggregate(label, len(samples), interquartile_mean(samples)))
    return found
