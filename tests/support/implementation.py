"""Implementations for tests of sweeps: they play nothing."""

import os
import time

import numpy as np


def made_up(config, folder, report):
    """Scores that follow from the seed; the folder must be empty but for metrics.csv."""
    assert [file.name for file in folder.iterdir()] == ["metrics.csv"]
    (folder / "notes.txt").write_text(config.env.name)
    rng = np.random.default_rng(config.training.seed)
    for _ in range(config.training.generations):
        report(steps_population=10, steps_validation=5, steps_test=3, fitness_mean=1.5, test_mean=rng.normal())


def broken(config, folder, report):
    report(test_mean=1.0)
    if config.training.seed == 1:
        raise ValueError("no way")
    if config.training.seed == 2:
        report(test_means=1.0)
    if config.training.seed == 3:
        report(test_mean=float("nan"))


def waits(config, folder, report):
    (folder / "pid").write_text(str(os.getpid()))
    report(test_mean=1.0)
    time.sleep(600)


not_a_function = 3
