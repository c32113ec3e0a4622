"""Aggregates of normalized scores over all games of a grid (Agarwal et al. 2021, arXiv:2108.13264)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations, product

import numpy as np

from neuroevo.core.statistics import Summary, interquartile_mean
from neuroevo.sweeps.implementations import Row
from neuroevo.sweeps.status import TrialStatus, grouped
from neuroevo.sweeps.sweep import Scales

_RESAMPLES = 2000
_MOST_COMPARED = 8  # pairs are listed for at most this many configurations


def last_scores(statuses: Iterable[TrialStatus]) -> np.ndarray:
    """Return the score of each trial's last elite, float64 [n], without the trials that have no score."""
    return np.array([each.score(each.played[-1]) for each in statuses if each.played], np.float64)


def normalized(statuses: Sequence[TrialStatus], scales: Scales) -> dict[str, dict[str, np.ndarray]]:
    """Return normalized scores by group of a grid's trials and by game, without the games that have no score."""
    scores = {key: last_scores(own) for key, own in grouped(statuses).items()}
    found: dict[str, dict[str, np.ndarray]] = {group: {} for _, group in scores if scales}
    for group, (game, (low, high)) in product(found, scales.items()):
        if len(own := scores.get((game, group), ())):
            found[group][game] = (own - low) / (high - low)
    return found


def bounds(name: str, of: Summary) -> Row:
    """Return the table columns of a confidence interval."""
    return {f"{name}_low95": of.low, f"{name}_high95": of.high}


def aggregates(statuses: Sequence[TrialStatus], scales: Scales) -> list[Row]:
    """Return the rows of aggregates.csv: each configuration's interquartile mean over all games with a scale.

    The interval is stratified by game. Without scales the result is empty.
    """
    rows = []
    for group, games in normalized(statuses, scales).items():
        iqm = interquartile_mean(list(games.values()))
        rows.append({"config": group, "games": len(games), "runs": iqm.n, "iqm": iqm.mean, **bounds("iqm", iqm)})
    return rows


def improvements(statuses: Sequence[TrialStatus], scales: Scales) -> list[Row]:
    """Return the rows of improvement.csv: the probability that a trial of a configuration beats one of another.

    The probability is the mean over the games that both have, with a bootstrap interval stratified by game; a draw
    counts half. Without common games, or with more than _MOST_COMPARED configurations, the result is empty.
    """
    rows = []
    known = normalized(statuses, scales)
    for (one, own), (other, theirs) in permutations(known.items(), 2) if len(known) <= _MOST_COMPARED else ():
        if games := [(own[game], theirs[game]) for game in own if game in theirs]:
            low, high = _interval(games)
            numbers = {"probability": _probability(games), "low95": low, "high95": high}
            rows.append({"config": one, "than": other, **numbers})
    return rows


def _probability(games: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    return float(np.mean([np.mean((x[:, None] > y) + 0.5 * (x[:, None] == y)) for x, y in games]))


def _interval(games: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float | None, float | None]:
    if min(len(scores) for game in games for scores in game) < 2:
        return None, None
    rng = np.random.default_rng(0)
    drawn = [[(rng.choice(x, len(x)), rng.choice(y, len(y))) for x, y in games] for _ in range(_RESAMPLES)]
    low, high = np.percentile([_probability(each) for each in drawn], [2.5, 97.5])
    return float(low), float(high)
