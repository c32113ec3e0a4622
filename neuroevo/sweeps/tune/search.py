"""Optuna's search as sweeps need it: trials have numbers and seeds, and values are checked before they are played."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import optuna
from ray import tune
from ray.tune.search import Searcher
from ray.tune.search.optuna import OptunaSearch

from neuroevo.core.problems import ConfigError, Problem, inline
from neuroevo.sweeps.tune.ledger import Ledger, Trial
from neuroevo.sweeps.tune.points import Values, refused, with_seed
from neuroevo.sweeps.tune.space import Choice, Range
from neuroevo.sweeps.tune.sweep import Sweep
from neuroevo.sweeps.tune.trainable import NUMBER, TRIAL

_ATTEMPTS = 100  # at values that the configuration accepts


class NumberedSearch(Searcher):
    """Optuna's tree-structured Parzen estimator, with the sweep's seed.

    A value that the configuration refuses is a failed trial to Optuna, and another one is asked for. A number that the
    ledger knows from before a crash, but Tune does not, gets the same values again, so that its run goes on.
    """

    def __init__(self, sweep: Sweep, ledger: Ledger):
        """Args: the sweep, and its trials, to which new ones are added."""
        super().__init__(metric=sweep.metric, mode="max")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._sweep, self._ledger = sweep, ledger
        space = {key: _domain(values) for key, values in sweep.space.items()}
        seed = sweep.settings.seed % 2**32
        self._optuna: Any = OptunaSearch(space=space, metric=sweep.metric, mode="max", seed=seed)
        self._next = 0

    def suggest(self, trial_id: str) -> dict[str, Any]:
        """Chooses the values of a new trial.

        Args:
            trial_id: Tune's name of it.

        Returns:
            Its part of Tune's configuration.

        Raises:
            ConfigError: The configuration refused everything that was chosen.
        """
        number, self._next = self._next, self._next + 1
        values = self._again(number, trial_id) or self._new(number, trial_id)
        if number not in self._ledger.trials:
            self._ledger.trials[number] = Trial(number, values)
            self._ledger.write()
        return {TRIAL: {NUMBER: number, **values}}

    def _again(self, number: int, trial_id: str) -> Values | None:
        """The values that a trial had before a crash, which Optuna is told."""
        known = self._ledger.trials.get(number)
        if known is None:
            return None
        fixed = {key: _label(values, known.values[key]) for key, values in self._sweep.space.items()}
        self._optuna._ot_study.enqueue_trial(fixed)
        self._optuna.suggest(trial_id)
        return known.values

    def _new(self, number: int, trial_id: str) -> Values:
        problems: list[Problem] = []
        for attempt in range(_ATTEMPTS):
            name = trial_id if attempt == 0 else f"{trial_id}-{attempt}"
            chosen = self._optuna.suggest(name)
            values = {key: _value(of, chosen[key]) for key, of in self._sweep.space.items()}
            problems = refused(self._sweep.tables, values)
            if not problems:
                self._optuna._ot_trials[trial_id] = self._optuna._ot_trials[name]
                return with_seed(values, self._sweep.tables, self._sweep.seed, number)
            self._optuna.on_trial_complete(name, error=True)
            self._optuna._completed_trials.discard(trial_id)
        raise ConfigError(problems, f"each of {_ATTEMPTS} points chosen for trial {number}")

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Tells Optuna a generation's result."""
        self._optuna.on_trial_result(trial_id, result)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Tells Optuna how a trial ended."""
        self._optuna.on_trial_complete(trial_id, result, error)

    def save(self, checkpoint_path: str) -> None:
        """Writes what Optuna knows and which number is next."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "optuna.pkl"
            self._optuna.save(str(path))
            state = {"next": self._next, "optuna": path.read_bytes()}
        Path(checkpoint_path).write_bytes(pickle.dumps(state))

    def restore(self, checkpoint_path: str) -> None:
        """Reads what save() wrote."""
        state = pickle.loads(Path(checkpoint_path).read_bytes())
        self._next = state["next"]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "optuna.pkl"
            path.write_bytes(state["optuna"])
            self._optuna.restore(str(path))


def _domain(values: Choice | Range) -> Any:
    """Tune's word for a key's values. Optuna chooses among texts where TOML has lists or tables."""
    if isinstance(values, Choice):
        return tune.choice([_label(values, value) for value in values.values])
    return values.domain()


def _label(values: Choice | Range, value: Any) -> Any:
    if isinstance(values, Choice) and any(isinstance(each, list | dict) for each in values.values):
        return inline(value)
    return value


def _value(values: Choice | Range, chosen: Any) -> Any:
    if isinstance(values, Choice):
        return next(value for value in values.values if _label(values, value) == chosen)
    return values.clip(chosen)
