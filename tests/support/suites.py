"""Small suites for tests, with the child process that has a ToyEvaluator."""

import csv
import sys
from textwrap import dedent

from neuroevo.sweeps.runner import SuiteWatcher, run_suite
from neuroevo.sweeps.suite import load_suite

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


def write(folder, text):
    """A suite's file with [suite] from `text`, beside ga.toml and rs.toml."""
    (folder / "ga.toml").write_text(GA)
    (folder / "rs.toml").write_text(RANDOM_SEARCH)
    (folder / "suite.toml").write_text("[suite]\n" + dedent(text))
    return folder / "suite.toml"


def load(folder, text, **options):
    """The suite of such a file, with its runs in folder/out."""
    return load_suite(write(folder, text), out=folder / "out", **options)


def table(path, without=("seconds",)):
    """The rows of a CSV file, without columns that begin so: by default those that depend on the clock."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{key: value for key, value in row.items() if not key.startswith(without)} for row in rows]


class Listener(SuiteWatcher):
    """Keeps the calls it gets."""

    def __init__(self):
        self.events, self.rows, self.most, self._going = [], [], 0, set()

    def begin(self, statuses, parallel):
        self.statuses, self.parallel = [each.status for each in statuses], parallel

    def unreadable(self, run, reason):
        self.events.append(("unreadable", run.name, reason))

    def started(self, run, generations, threads):
        self.events.append(("started", run.name, generations))
        self._going.add(run.name)
        self.most = max(self.most, len(self._going))

    def generation(self, run, row):
        self.rows.append((run.name, row))

    def finished(self, now):
        self.events.append(("finished", now.run.name, len(now.rows)))
        self._going.discard(now.run.name)

    def failed(self, failure):
        self.events.append(("failed", failure.run.name, failure.reason))
        self._going.discard(failure.run.name)


def run_toys(suite):
    """Runs the suite with ToyEvaluators; what the watcher heard, and the failures."""
    listener = Listener()
    return listener, run_suite(suite, listener, child=TOY_CHILD)
