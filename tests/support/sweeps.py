"""Small sweeps for tests."""

from textwrap import dedent

from neuroevo.sweeps.sweep import load_sweep
from neuroevo.sweeps.watcher import SweepWatcher
from tests.support.suites import GA

PENDULUM = GA.replace('"frostbite"', '"gymnasium:Pendulum-v1"\noptions = {workers = 1}').replace(
    '"model"', '"mlp"\nhidden = [4]'
)
FROSTBITE = GA.replace("test_episodes = 2", "test_episodes = 0")  # which have no cut-off
SIGMA = '"algorithm.sigma" = {log_uniform = [0.001, 1.0]}\n'


def write(folder, text, space=SIGMA):
    """A sweep's file with [sweep] from `text` and [sweep.space], beside pendulum.toml and frostbite.toml."""
    (folder / "pendulum.toml").write_text(PENDULUM)
    (folder / "frostbite.toml").write_text(FROSTBITE)
    text = text if "config" in text else f'configs = "pendulum.toml"\n{dedent(text)}'
    (folder / "sweep.toml").write_text(f"[sweep]\n{dedent(text)}\n[sweep.space]\n{dedent(space)}")
    return folder / "sweep.toml"


def load(folder, text, space=SIGMA, **options):
    """The sweep of such a file, with its trials in folder/out."""
    return load_sweep(write(folder, text, space), out=folder / "out", **options)


class Listener(SweepWatcher):
    """Keeps the calls it gets."""

    def __init__(self):
        self.events, self.rows = [], {}

    def begin(self, trials, total, parallel):
        self.before, self.total = {trial.number: trial.status for trial in trials}, total

    def started(self, trial):
        self.events.append(("started", trial.number))

    def result(self, trial, row):
        self.rows.setdefault(trial.number, []).append(row)

    def ended(self, trial):
        self.events.append((trial.status, trial.number))
