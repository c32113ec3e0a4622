"""sweep.db: the trials of a sweep as an Optuna study in SQLite storage.

Each trial of a sweep is an Optuna trial with the attribute "number". A failed trial is repeated as a new Optuna trial
with the same number; Optuna trials whose values the configuration rejects have no number. optuna-dashboard and
notebooks can read the file while the sweep is running.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroevo.config.own_runs import is_own, remember
from neuroevo.config.schema import BUDGETS
from neuroevo.core.errors import NotTrustedError, UserError
from neuroevo.core.extras import require
from neuroevo.core.problems import ConfigError, Problem, refuse, shown
from neuroevo.core.randomness import draw_seeds
from neuroevo.sweeps.checks import attempt
from neuroevo.sweeps.searches import choose, make_pruner, make_sampler
from neuroevo.sweeps.sweep import Status, Sweep, Trial

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

DATABASE = "sweep.db"
NAME = "neuroevo"
_SEEDS = 1001  # purpose of random numbers, distinct from those of runs
_ATTEMPTS = 100  # attempts to sample valid values
_NOT_OWN = (
    "Optuna reads {}, which can run arbitrary code, and the sweep was not begun on this machine. If you trust its "
    "author, pass --trust; see docs/security.md"
)
# Settings that may change when a sweep is resumed; configurations, games and seeds may be added.
_FREE = ("parallel", "cluster", "out", "set", "normalize", "configs", "games", "implementations", "seeds")
_STATES = {"waiting": "WAITING", "running": "RUNNING", "finished": "COMPLETE", "stopped": "PRUNED", "failed": "FAIL"}
_STATUSES: dict[str, Any] = {state: status for status, state in _STATES.items()}
_BEGUN_WITH = ("number", "label", "game", "seed", "values", "folder")
_ATTRIBUTES = (*_BEGUN_WITH, "reason", "stopped")  # of Optuna's trials, and of a Trial


class _Connection(sqlite3.Connection):
    """SQLite connection that merges Optuna's commits into one transaction, so that a kill cannot leave partial data."""

    _open = False

    def commit(self) -> None:
        """Commit, unless a transaction() is open."""
        if not self._open:
            super().commit()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make the writes in the block atomic."""
        self.execute("BEGIN IMMEDIATE")
        self._open = True
        try:
            yield
        except BaseException:
            with suppress(sqlite3.ProgrammingError):  # SQLAlchemy closes the connection at an interrupt
                self.rollback()
            raise
        else:
            self.execute("COMMIT")
        finally:
            self._open = False


class Study:
    """Optuna study with the trials of a sweep.

    Args:
        out: The sweep's folder.
        trust: Read the file even if the sweep was not begun on this machine by this user.
        new: Create the file if it does not exist.

    Raises:
        NotTrustedError: The sweep was not begun on this machine by this user.
        UserError: The file does not exist or cannot be read.
    """

    def __init__(self, out: Path, trust: bool = False, new: bool = False):
        require("sweep", "optuna")
        self.file = out / DATABASE
        self._identities: dict[int, int] = {}
        self._reported: dict[int, tuple[set[int], int | None]] = {}
        if not self.file.is_file() and not new:
            raise UserError(f"there is no sweep in {out}: expected {self.file}")
        if new:
            self.file.touch()
        if self.file.stat().st_size and not trust and not is_own(self.file):
            raise NotTrustedError(_NOT_OWN.format(self.file))
        if new:
            remember(self.file)  # before it has contents: this process may be killed while it creates the tables
        import optuna
        from sqlalchemy import StaticPool

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            one = {"creator": self._connect, "poolclass": StaticPool, "pool_reset_on_return": None}
            self._storage = optuna.storages.RDBStorage(
                f"sqlite:///{self.file}", engine_kwargs=one, skip_table_creation=not new
            )
            if new:
                self.study = optuna.create_study(
                    storage=self._storage, study_name=NAME, direction="maximize", load_if_exists=True
                )
            else:
                self.study = optuna.load_study(storage=self._storage, study_name=NAME)
        except Exception as error:  # from SQLAlchemy, SQLite or Optuna
            reason = (str(error.__cause__ or error).splitlines() or [type(error).__name__])[0]
            raise UserError(f"{self.file} cannot be read: {reason}") from None

    def _connect(self) -> _Connection:
        self._connection = sqlite3.connect(self.file, timeout=60, check_same_thread=False, factory=_Connection)
        return self._connection

    def begin(self, sweep: Sweep, over: Callable[[Trial], bool]) -> None:
        """Record a new sweep's settings, or check that a resumed sweep has the same; add the trials to train.

        These are new trials of a grid, failed trials, and finished trials that are not `over` after a budget increase.

        Raises:
            ConfigError: The folder contains another sweep; the message lists the differences.
        """
        generations = sweep.base.training.generations
        self.study.pruner = make_pruner(sweep.settings.pruner, sweep.settings.pruner_options, generations)
        with self._connection.transaction():
            self._check_same(sweep)
            latest = self._latest()
            names = {_trial(each).name for each in latest.values()}
            for number, trial in enumerate((each for each in sweep.points if each.name not in names), len(latest)):
                self._add(replace(trial, number=number), sweep)
            trials = self.trials(sweep)
            for number in latest.keys() - {trial.number for trial in trials}:
                if latest[number].state.name == "WAITING":  # it is no longer part of the sweep and must not start
                    self._storage.set_trial_state_values(self._identity(number), _state("failed"))
            for trial in trials:
                if trial.status == "failed" or (trial.status == "finished" and not over(trial)):
                    self._add(trial, sweep, latest[trial.number])

    def trials(self, sweep: Sweep | None = None) -> list[Trial]:
        """Return the trials by number: all, or those that are part of a sweep, whose file may have changed."""
        found = [_trial(each) for _, each in sorted(self._latest().items())]
        if sweep is None or sweep.settings.search != "grid":
            return found
        names = {trial.name for trial in sweep.points}
        return [trial for trial in found if trial.name in names]

    def ask(self, sweep: Sweep) -> Trial:
        """Start the next waiting trial, or a new trial with values from the sampler.

        Raises:
            ConfigError: The configuration rejected all sampled values.
        """
        if any(each.state.name == "WAITING" for each in self.study.get_trials(deepcopy=False)):
            number = self.study.ask().user_attrs["number"]
            self._identities.pop(number, None)  # of the failed trial with this number
            return _trial(self._latest()[number])
        (tables,) = sweep.tables.values()
        chosen = sweep.settings
        problems: list[Problem] = []
        for _ in range(_ATTEMPTS):
            with self._connection.transaction():
                number = len(self._latest())
                refused = sum("number" not in each.user_attrs for each in self.study.get_trials(deepcopy=False))
                place = 0 if chosen.search == "qmc" else number + refused
                seed = draw_seeds(1, chosen.seed, place, _SEEDS)[0] % 2**32
                # A new sampler per trial, which depends only on stored data: resuming does not change the choices.
                self.study.sampler = make_sampler(chosen.search, chosen.search_options, seed)
                asked, values = choose(self.study, sweep.space)
                config, problems = attempt(tables, values)
                if config:
                    trial = sweep.trial(number, values)
                    for name in _BEGUN_WITH:
                        asked.set_user_attr(name, getattr(trial, name))
                    return replace(trial, status="running")
                self.study.tell(asked, state=_state("failed"))
        raise ConfigError(problems, f"each of {_ATTEMPTS} points that the search sampled")

    def report(self, number: int, step: int, value: float) -> bool:
        """Record a trial's metric after `step` generations if it is finite; return whether to prune the trial."""
        identity = self._identity(number)
        if identity not in self._reported:
            frozen = self._storage.get_trial(identity)  # takes time proportional to the trial's steps
            self._reported[identity] = set(frozen.intermediate_values), frozen.user_attrs.get("stopped")
        known, stopped = self._reported[identity]
        if stopped is not None:  # possibly by a process that was killed
            return step >= stopped
        if not math.isfinite(value) or step in known:
            return False
        with self._connection.transaction():  # asha stores the rung before it returns, and decides only once
            self._storage.set_trial_intermediate_value(identity, step, value)
            pruned = self._prunes and self.study.pruner.prune(self.study, self._storage.get_trial(identity))
            if pruned:
                self._storage.set_trial_user_attr(identity, "stopped", step)
        known.add(step)
        self._reported[identity] = known, step if pruned else None
        return pruned

    @property
    def _prunes(self) -> bool:
        from optuna.pruners import NopPruner

        return not isinstance(self.study.pruner, NopPruner)

    def note(self, number: int, **attributes: Any) -> None:
        """Set attributes of a trial, such as its folder and its values."""
        identity = self._identity(number)
        with self._connection.transaction():
            for name, value in attributes.items():
                self._storage.set_trial_user_attr(identity, name, value)

    def tell(self, number: int, status: Status, value: float = math.nan, reason: str = "") -> Trial:
        """Set a trial's final status: "finished" with the value of its metric, "stopped", or "failed" with a reason."""
        identity = self._identity(number)
        value = -math.inf if math.isnan(value) else value  # Optuna rejects NaN for a finished trial
        with self._connection.transaction():
            if status == "failed":
                self._storage.set_trial_user_attr(identity, "reason", reason)
            known = self._storage.get_trial_number_from_id(identity)
            self.study.tell(known, value if status == "finished" else None, state=_state(status))
        return _trial(self._storage.get_trial(identity))

    def _latest(self) -> dict[int, FrozenTrial]:
        """Return Optuna's newest trial for each number."""
        found = self.study.get_trials(deepcopy=False)
        return {each.user_attrs["number"]: each for each in found if "number" in each.user_attrs}

    def _identity(self, number: int) -> int:
        """Return the id of a trial in Optuna's storage, cached because listing all trials takes long."""
        if number not in self._identities:
            study, known = self._storage.get_study_id_from_name(NAME), self._latest()[number].number
            self._identities[number] = self._storage.get_trial_id_from_study_id_trial_number(study, known)
        return self._identities[number]

    def _add(self, trial: Trial, sweep: Sweep, before: FrozenTrial | None = None) -> None:
        """Add a waiting trial, with the intermediate values and pruner data of the Optuna trial `before`, if given."""
        import optuna

        domains = {key: domain for key, domain in sweep.space.items() if key in trial.values}
        self.study.add_trial(
            optuna.trial.create_trial(
                state=_state("waiting"),
                params={key: domain.label(trial.values[key]) for key, domain in domains.items()},
                distributions={key: domain.distribution for key, domain in domains.items()},
                user_attrs={name: getattr(trial, name) for name in _BEGUN_WITH},
                system_attrs=None if before is None else before.system_attrs,
                intermediate_values=None if before is None else before.intermediate_values,
            )
        )

    def _check_same(self, sweep: Sweep) -> None:
        """Record the settings on which trials depend. Raise ConfigError if the folder contains another sweep."""
        chosen, training = sweep.settings, sweep.base.training
        grid, kept = chosen.search == "grid", () if chosen.search == "pbt" else ("trials",)
        now: dict[str, Any] = {key: value for key, value in asdict(chosen).items() if key not in (*_FREE, *kept)}
        if not grid or chosen.pruner != "none":  # other trials are compared with finished ones, which must not change
            now["budgets"] = {key: getattr(training, key) for key in BUDGETS}
        now["configs"] = {f"{label}/{game}": config.origin() for (label, game), config in sweep.configs.items()}
        now = json.loads(json.dumps(now))
        before = self.study.user_attrs.get("sweep", now)
        known, own = before["configs"], now["configs"]
        changed = [name for name in own if name in known and known[name] != own[name]]
        both: dict[str, tuple[Any, Any]] = {key: (before.get(key), now.get(key)) for key in {**before, **now}}
        both["configs"] = {name: known[name] for name in changed}, {name: own[name] for name in changed}
        if not grid and not known.keys() & own.keys():  # a grid may continue with other configurations
            both = {"configs": (", ".join(known), ", ".join(own))}
        begun = f"the sweep in {sweep.out} was begun with"
        refuse(
            Problem(f"sweep.{key}", f"{begun} {shown(was)}; expected the same, or another --out", value)
            for key, (was, value) in both.items()
            if was != value
        )
        self.study.set_user_attr("sweep", {**before, "configs": {**known, **own}})


def _trial(known: FrozenTrial) -> Trial:
    attributes = {name: known.user_attrs[name] for name in _ATTRIBUTES if name in known.user_attrs}
    return Trial(**attributes, status=_STATUSES[known.state.name])


def _state(status: Status) -> Any:
    from optuna.trial import TrialState

    return TrialState[_STATES[status]]
