"""Scores over all games of a grid: normalized, since games count in points of their own.

Agarwal et al. 2021, arXiv:2108.13264.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from neuroevo.core.statistics import Summary, interquartile_mean
from neuroevo.sweeps.status import TrialStatus
from neuroevo.sweeps.sweep import Scales

_RESAMPLES = 2000
_MOST_COMPARED = 8  # configurations, whose pairs are listed


def last_scores(statuses: Iterable[TrialStatus]) -> np.ndarray:
    """Return the scores of the last elites of those trials that have one, float64 [n]."""
    return np.array([each.score(each.played[-1]) for each in statuses if each.played], np.float64)


def normalized(statuses: Sequence[TrialStatus], scales: Scales) -> dict[str, dict[str, np.ndarray]]:
    """Return the normalized scores of each configuration, by game; games without a score are missing.

    Args:
        statuses: The trials of a grid.
        scales: Of each game the scores that count as 0 and as 1.
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    for group in dict.fromkeys(each.group for each in statuses if scales):
        of = found.setdefault(group, {})
        for game, (low, high) in scales.items():
            scores = last_scores(each for each in statuses if (each.group, each.trial.game) == (group, game))
            if len(scores):
                of[game] = (scores - low) / (high - low)
    return found


@dataclass(frozen=True)
class Aggregate:
    """Normalized scores of one configuration over all of the games that have a scale.

    Attributes:
        config: Label of the configuration.
        games: How many games count.
        iqm: Interquartile mean over all trials of these games, with its interval, stratified by game.
    """

    config: str
    games: int
    iqm: Summary

    def row(self) -> dict[str, Any]:
        """Return the aggregate as plain values, with None for a value that is not known."""
        return {
            "config": self.config,
            "games": self.games,
            "runs": self.iqm.n,
            "iqm": self.iqm.mean,
            "iqm_low95": self.iqm.low,
            "iqm_high95": self.iqm.high,
        }


def aggregates(statuses: Sequence[TrialStatus], scales: Scales) -> list[Aggregate]:
    """Return an aggregate for each configuration; none without scales.

    Args:
        statuses: The trials of a grid.
        scales: Of each game the scores that count as 0 and as 1.
    """
    return [
        Aggregate(group, len(games), interquartile_mean(list(games.values())))
        for group, games in normalized(statuses, scales).items()
    ]


@dataclass(frozen=True)
class Improvement:
    """How likely a trial of one configuration scores higher than one of another, in the mean of the games.

    Attributes:
        config: The one.
        than: The other.
        probability: With its interval, by bootstrap stratified by game; a draw counts half.
    """

    config: str
    than: str
    probability: Summary

    def row(self) -> dict[str, Any]:
        """Return it as plain values."""
        of = self.probability
        return {"config": self.config, "than": self.than, "probability": of.mean, "low95": of.low, "high95": of.high}


def improvements(statuses: Sequence[TrialStatus], scales: Scales) -> list[Improvement]:
    """Compare every two configurations that have games in common; none where there are many configurations.

    Args:
        statuses: The trials of a grid.
        scales: Of each game the scores that count as 0 and as 1.
    """
    found = []
    known = normalized(statuses, scales)
    for (one, own), (other, theirs) in permutations(known.items(), 2) if len(known) <= _MOST_COMPARED else ():
        if common := [game for game in own if game in theirs]:
            found.append(Improvement(one, other, _improvement([(own[game], theirs[game]) for game in common])))
    return found


def _improvement(games: Sequence[tuple[np.ndarray, np.ndarray]]) -> Summary:
    def probability(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
        each = [np.mean((x[:, None] > y) + 0.5 * (x[:, None] == y)) for x, y in pairs]
        return float(np.mean(each))

    count = sum(len(x) + len(y) for x, y in games)
    if min(min(len(x), len(y)) for x, y in games) < 2:
        return Summary(count, probability(games), None, None, None)
    rng = np.random.default_rng(0)
    drawn = [probability([(rng.choice(x, len(x)), rng.choice(y, len(y))) for x, y in games]) for _ in range(_RESAMPLES)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Summary(count, probability(games), float(np.std(drawn)), float(low), float(high))
