"""After kill -9 of drivers and trials at any moment, repeating the command gives the results of a whole sweep."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sweeps import SIGMA, write

ROOT = Path(__file__).parents[2]
KINDS = {
    "grid": 'configs = ["ga.toml", "rs.toml"]\nseeds = 2\nparallel = 2\nset = ["training.generations=12"]\n',
    "tpe and asha": 'configs = "ga.toml"\nsearch = "tpe"\ntrials = 4\nset = ["training.generations=12"]\n'
    'pruner = "asha"\npruner_options = {min_resource = 3, reduction_factor = 2}\n',
    "cmaes and hyperband": 'configs = "ga.toml"\nsearch = "cmaes"\ntrials = 4\nset = ["training.generations=12"]\n'
    'search_options = {n_startup_trials = 2}\npruner = "hyperband"\n'
    "pruner_options = {min_resource = 3, reduction_factor = 2}\n",
    "pbt": 'configs = "ga.toml"\nsearch = "pbt"\ntrials = 3\nparallel = 2\nset = ["training.generations=12"]\n'
    "search_options = {interval = 6, quantile = 0.5}\n",
    "qmc and median": 'configs = "ga.toml"\nsearch = "qmc"\ntrials = 4\nset = ["training.generations=12"]\n'
    'pruner = "median"\npruner_options = {n_startup_trials = 1}\n',
}
SPACE = SIGMA + '"algorithm.population" = {integer = [4, 8]}\n'
KILLS = int(os.environ.get("NEUROEVO_TEST_KILLS", 0)) * len(KINDS) or 1  # of all kinds of sweeps together


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("place", range(len(KINDS)), ids=list(KINDS))
def test_a_sweep_that_is_killed_goes_on_to_the_same(place, tmp_path):
    """kill_sweep.py says when kills come, and run_files.py what is compared: values, results, and every file."""
    kills = KILLS // len(KINDS) + (place < KILLS % len(KINDS))
    if not kills:
        pytest.skip("more kinds of sweeps than kills")
    text = list(KINDS.values())[place]
    file = write(tmp_path, text, SPACE if "search" in text else None)
    command = [sys.executable, "-m", "tests.support.kill_sweep", str(file), "--kills", str(kills), "--toys"]
    variables = {**os.environ, "TOY_SECONDS": "0.02"}
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], cwd=ROOT, env=variables, capture_output=True, text=True
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert (found["different"], done.returncode) == ([], 0)
    assert sum(found["kills"].values()) == kills
