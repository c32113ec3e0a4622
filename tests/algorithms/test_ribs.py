"""pyribs's archives and emitters as an algorithm: comparison with pyribs's own loop, every kind of archive and emitter,
and rejected settings."""

from dataclasses import replace

import numpy as np
import pytest
from ribs.archives import GridArchive
from ribs.emitters import EvolutionStrategyEmitter
from ribs.schedulers import Scheduler

from neuroevo.algorithms.base import EvaluatedPopulation
from neuroevo.algorithms.ribs import Ribs
from neuroevo.config.load import make_config
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.native.weights import NativeWeights

D = 6
WEIGHTS = NativeWeights([f"input float32 1; dense {D} 0.0"])
PLANE = {"low": (-3.0, -3.0), "high": (3.0, 3.0), "cells": (20,)}


def sphere(vectors):
    return -np.square(vectors - 0.7).sum(axis=1), vectors[:, :2].copy()


def generations(algorithm, count, seed=4, judge=sphere):
    state = algorithm.init(seed)
    for _ in range(count):
        genomes = algorithm.ask(state, WEIGHTS)
        fitness, behaviors = judge(np.stack([WEIGHTS.theta(each) for each in genomes]).astype(np.float64))
        before, state = state, algorithm.tell(state, EvaluatedPopulation(genomes, fitness, 7, behaviors), WEIGHTS)
        yield genomes, algorithm.metrics(before, state), state


def test_it_is_pyribs_own_loop():
    algorithm = Ribs(population=24, emitters=3, sigma=0.5, **PLANE)
    seeds = []

    def remembered(theta, seed):
        seeds.append(seed)
        return start(theta, seed)

    start = algorithm.start
    object.__setattr__(algorithm, "start", remembered)
    ours = list(generations(algorithm, 8))
    numbers = np.random.SeedSequence(seeds[0]).generate_state(4, np.uint32).tolist()
    archive = GridArchive(solution_dim=D, dims=(20, 20), ranges=[(-3, 3), (-3, 3)], seed=numbers[0])
    emitters = [
        EvolutionStrategyEmitter(archive, x0=np.zeros(D), sigma0=0.5, batch_size=8, seed=each) for each in numbers[1:]
    ]
    scheduler = Scheduler(archive, emitters)
    for genomes, metrics, state in ours:
        asked = scheduler.ask()
        assert np.array_equal([each.root.vector for each in genomes], asked.astype(np.float32))
        scheduler.tell(*sphere(asked.astype(np.float32).astype(np.float64)))
        assert metrics == {
            "elites": archive.stats.num_elites,
            "coverage": archive.stats.coverage,
            "qd_score": archive.stats.qd_score,
        }
        assert np.array_equal(algorithm.elite(state).root.vector, archive.best_elite["solution"].astype(np.float32))
    assert metrics["coverage"] > 0.1


@pytest.mark.parametrize(
    "options",
    [
        {"emitter_options": {"es": "sep_cma_es", "ranker": "imp", "restart_rule": "basic"}},
        {"emitter": "iso_line", "emitter_options": {"line_sigma": 0.3}},
        {"emitter": "gaussian"},
        {"archive_kind": "cvt", "cells": (6, 7), "archive_options": {"samples": 1000}},
        {"archive_kind": "dns"},
        {"archive_kind": "proximity", "archive_options": {"novelty_threshold": 0.2}},
        {"archive_options": {"learning_rate": 0.1, "threshold_min": -60.0}},
    ],
    ids=lambda options: "-".join(map(str, options.values()))[:30],
)
def test_every_kind_of_archive_and_emitter(options):
    algorithm = Ribs(**{**PLANE, "population": 20, "emitters": 2, "sigma": 0.5, **options})
    first, *_, last = (metrics for _, metrics, _ in generations(algorithm, 6))
    assert last["elites"] > first["elites"] or options.get("archive_kind") == "dns"
    assert last["coverage"] <= 1 and np.isfinite(last["qd_score"])


def test_the_elites_of_cma_mae_are_the_best_of_each_cell():
    """The archive with a learning rate discards elites, since every accepted genome raises a threshold."""
    options = {"archive_options": {"learning_rate": 0.01, "threshold_min": -1000.0}}
    algorithm, seen = Ribs(population=20, emitters=2, sigma=0.5, **options, **PLANE), {}
    for genomes, metrics, _ in generations(algorithm, 10):
        fitness, behaviors = sphere(np.stack([WEIGHTS.theta(each) for each in genomes]).astype(np.float64))
        for cell, each in zip(algorithm.grid.cells(behaviors).tolist(), fitness, strict=True):
            seen[tuple(cell)] = max(each, seen.get(tuple(cell), -np.inf))
        assert metrics["elites"] == len(seen)
        assert metrics["qd_score"] == pytest.approx(sum(seen.values()))


def test_a_behavior_that_is_not_known():
    def judge(vectors):
        fitness, behaviors = sphere(vectors)
        behaviors[0] = np.nan
        fitness[0] = 100.0
        return fitness, behaviors

    *_, (_, _, state) = generations(Ribs(population=12, emitters=2, **PLANE), 3, judge=judge)
    elite = state.best_genome.root.vector.astype(np.float64)
    assert sphere(elite[None])[0][0] < 0
    assert all((behaviors[0] > 1e300).all() for behaviors in state.behaviors)
    algorithm = Ribs(population=12, emitters=2, **PLANE)
    algorithm.check_state(state)
    with pytest.raises(ValueError, match="behaviors of 0 generations are stored, expected 3"):
        algorithm.check_state(replace(state, behaviors=()))
    with pytest.raises(ValueError, match="there are no behaviors"):
        list(generations(Ribs(population=12, emitters=2, **PLANE), 1, judge=lambda v: (sphere(v)[0], None)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population": 31}, "expected a multiple of the 5 emitters"),
        ({"emitter_options": {"ranks": "imp"}}, "EvolutionStrategyEmitter has no such argument.*ranker"),
        ({"archive_options": {"learn_rate": 0.1}}, "GridArchive has no such argument.*learning_rate"),
        ({"cells": [2, 2, 2]}, "expected 2 numbers"),
    ],
)
def test_settings_that_are_refused(options, message):
    tables = {"env": {"name": "hard_maze"}, "network": {"name": "mlp"}, "algorithm": {"name": "ribs", **options}}
    with pytest.raises(ConfigError, match=message):
        make_config(tables)


def test_what_pyribs_refuses():
    algorithm = Ribs(emitter_options={"ranker": "best"}, **PLANE)
    with pytest.raises(ConfigError, match="rejected by pyribs's EvolutionStrategyEmitter"):
        algorithm.ask(algorithm.init(1), WEIGHTS)
    large = NativeWeights(["input float32 150; dense 150 0.1"])
    with pytest.raises(UserError, match="22,500 weights, expected at most 20,000"):
        Ribs(**PLANE).ask(Ribs(**PLANE).init(1), large)
