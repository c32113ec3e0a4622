"""Small sweeps for tests, with the child process that has a ToyEvaluator."""

import csv
import sys
from textwrap import dedent
from unittest.mock import patch

from neuroevo.sweeps import driver
from neuroevo.sweeps.sweep import load_sweep
from tests.support.inline import InlineToys

TOY_CHILD = (sys.executable, "-m", "tests.support.toy_child")
GA = """
[env]
name = "frostbite"
[network]
name = "model"
[algorithm]
name = "ga"
population = 4
parents = 2
validation_candidates = 2
[training]
generations = 3
max_episode_steps = 20
validation_episodes = 2
test_episodes = 2
"""
RANDOM_SEARCH = GA.replace('name = "ga"', 'name = "random_search"').replace("parents = 2\n", "")
PENDULUM = GA.replace('"frostbite"', '"gymnasium:Pendulum-v1"\noptions = {workers = 1}').replace(
    '"model"', '"mlp"\nhidden = [4]'
)
MAZE = GA.replace('"frostbite"', '"hard_maze"').replace('"model"', '"mlp"\nhidden = [4]')
FROSTBITE = GA.replace("test_episodes = 2", "test_episodes = 0")  # which have no cut-off
CONFIGS = {"ga": GA, "rs": RANDOM_SEARCH, "pendulum": PENDULUM, "maze": MAZE, "frostbite": FROSTBITE}
SIGMA = '"algorithm.sigma" = {log_uniform = [0.001, 1.0]}\n'


def write(folder, text, space=None):
    """Write a sweep's file next to the files of CONFIGS.

    Args:
        folder: The folder.
        text: The keys of [sweep]; without configs, pendulum.toml is used.
        space: The keys of [sweep.space]; None: SIGMA if `text` sets a search, else empty.
    """
    for name, config in CONFIGS.items():
        (folder / f"{name}.toml").write_text(config)
    text = dedent(text) if "configs" in text else f'configs = "pendulum.toml"\n{dedent(text)}'
    space = (SIGMA if "search = " in text else "") if space is None else space
    section = f"[sweep.space]\n{dedent(space)}" if space else ""
    (folder / "sweep.toml").write_text(f"[sweep]\n{text}\n{section}")
    return folder / "sweep.toml"


def load(folder, text, space=None, **options):
    """Load such a sweep, with its trials in folder/out."""
    return load_sweep(write(folder, text, space), out=folder / "out", **options)


def table(path, without=("seconds", "steps_per_s")):
    """Return the rows of a CSV file, without columns that begin so: by default those that depend on the clock."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{key: value for key, value in row.items() if not key.startswith(without)} for row in rows]


class Listener(driver.SweepWatcher):
    """Watcher that records its calls."""

    def __init__(self):
        self.events, self.rows, self.most, self._running = [], {}, 0, set()
        self.resumed = {}

    def begin(self, trials, total, parallel):
        self.before, self.total, self.parallel = {trial.number: trial.status for trial in trials}, total, parallel

    def started(self, trial, resumes):
        self.resumed[trial.number] = resumes
        self.events.append(("started", trial.number))
        self._running.add(trial.number)
        self.most = max(self.most, len(self._running))

    def result(self, trial, row):
        self.rows.setdefault(trial.number, []).append(row)

    def unreadable(self, trial, reason):
        self.events.append(("unreadable", trial.number, reason))

    def ended(self, trial):
        self.events.append((trial.status, trial.number))
        self._running.discard(trial.number)


def run_toys(sweep):
    """Run a sweep with ToyEvaluators in this process; return its listener and all trials."""
    listener = Listener()
    with patch.object(driver, "_POLL_SECONDS", 0), patch.object(driver, "Processes", InlineToys):
        return listener, driver.run_sweep(sweep, listener)


def run_toy_processes(sweep):
    """Do the same with a process for each trial."""
    listener = Listener()
    return listener, driver.run_sweep(sweep, listener, program=TOY_CHILD)
