"""Ray Tune's schedulers as sweeps need them: what they know survives a crash, and clones keep a seed of their own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ray import tune
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, PopulationBasedTraining, TrialScheduler

from neuroevo.sweeps.tune.points import SEED, refused
from neuroevo.sweeps.tune.space import Space
from neuroevo.sweeps.tune.sweep import Sweep
from neuroevo.sweeps.tune.trainable import NUMBER, TRIAL

_FIRST_RUNG, _INTERVALS = 16, 10  # parts of a budget
_ATTEMPTS = 20  # at values that a configuration accepts


class Asha(ASHAScheduler):
    """Asynchronous successive halving whose rungs can be saved, which Tune does with searchers alone."""

    def state(self) -> Any:
        """What is to be saved: each bracket's rungs, with the results of the trials that came to them."""
        return [copy.deepcopy(bracket._rungs) for bracket in self._brackets]

    def go_on(self, state: Any) -> None:
        """Takes what state() returned."""
        for bracket, rungs in zip(self._brackets, state, strict=True):
            bracket._rungs = copy.deepcopy(rungs)


class Pbt(PopulationBasedTraining):
    """Population-based training in which a clone keeps its own number and seed, and gets values that can be played.

    Tune's clones the donor's configuration whole, its seed too, so that donor and clone would play the same episodes;
    and its factors know no bounds.
    """

    def __init__(self, space: Space, tables: Mapping[str, Any], **options: Any):
        """Args: the space, the tables that all trials share, and Tune's own."""
        mutations: dict[str, Any] = {TRIAL: {key: values.mutations() for key, values in space.items()}}
        super().__init__(hyperparam_mutations=mutations, log_config=False, **options)
        self._space, self._tables = space, tables
        self._saved: dict[str, tuple[Any, ...]] = {}

    def state(self) -> Any:
        """What is to be saved: of each trial when it was last compared, and with which score."""
        return {trial.trial_id: _remembered(state) for trial, state in self._trial_state.items()}

    def go_on(self, state: Any) -> None:
        """Takes what state() returned, for the trials that are added from now on and those that are there."""
        self._saved = dict(state)
        for trial in self._trial_state:
            self._recall(trial)

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """As Tune has it, with what was saved of the trial."""
        super().on_trial_add(tune_controller, trial)
        self._recall(trial)

    def _recall(self, trial: Any) -> None:
        if trial.trial_id in self._saved:
            own = self._trial_state[trial]
            own.last_score, own.last_train_time, own.last_perturbation_time, own.last_result = self._saved.pop(
                trial.trial_id
            )

    def _get_new_config(self, trial: Any, trial_to_clone: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        own = {key: trial.config[TRIAL][key] for key in (NUMBER, SEED) if key in trial.config[TRIAL]}
        for _ in range(_ATTEMPTS):
            config, operations = super()._get_new_config(trial, trial_to_clone)
            drawn = {key: self._space[key].clip(config[TRIAL][key]) for key in self._space}
            if not refused(self._tables, {key: value for key, value in {**drawn, **own}.items() if key != NUMBER}):
                return {**config, TRIAL: {**config[TRIAL], **drawn, **own}}, operations
        config = copy.deepcopy(trial_to_clone.config)
        return {**config, TRIAL: {**config[TRIAL], **own}}, {}


def _remembered(state: Any) -> tuple[Any, ...]:
    return state.last_score, state.last_train_time, state.last_perturbation_time, state.last_result


def make_scheduler(sweep: Sweep) -> TrialScheduler:
    """Makes a sweep's scheduler.

    Args:
        sweep: The sweep.

    Returns:
        The scheduler.
    """
    chosen = sweep.settings
    time = "training_iteration" if chosen.time == "generation" else chosen.time
    common: dict[str, Any] = {"time_attr": time, "metric": sweep.metric, "mode": "max"}
    if chosen.scheduler == "asha":
        end = chosen.asha.max_t or sweep.budget
        assert end is not None, "load_sweep() has checked it"
        grace = chosen.asha.grace_period or max(end / _FIRST_RUNG, 1)
        times: dict[str, Any] = {"max_t": end, "grace_period": min(grace, end)}
        return Asha(
            reduction_factor=chosen.asha.reduction_factor,
            brackets=chosen.asha.brackets,
            **times,
            **common,
        )
    if chosen.scheduler == "pbt":
        interval = chosen.pbt.perturbation_interval or (sweep.budget or 0) / _INTERVALS
        return Pbt(
            sweep.space,
            sweep.tables,
            perturbation_interval=interval,
            quantile_fraction=chosen.pbt.quantile_fraction,
            resample_probability=chosen.pbt.resample_probability,
            synch=chosen.pbt.synch,
            **common,
        )
    return FIFOScheduler()  # type: ignore[no-untyped-call]


class SchedulerState(tune.Callback):
    """Saves a scheduler's state with Tune's own, and gives it back to the scheduler of a sweep that goes on."""

    def __init__(self, scheduler: TrialScheduler):
        """Args: the scheduler; one without state() has nothing to save."""
        self._scheduler = scheduler

    def get_state(self) -> dict[str, Any] | None:
        """What Tune saves."""
        return {"state": self._scheduler.state()} if isinstance(self._scheduler, Asha | Pbt) else None

    def set_state(self, state: dict[str, Any]) -> None:
        """What Tune saved."""
        if isinstance(self._scheduler, Asha | Pbt):
            self._scheduler.go_on(state["state"])
