"""sweep.db: the trials of a sweep as a study of Optuna's, in its own SQLite storage.

Each trial of a sweep is a trial of Optuna's with the attribute "number". A failed trial is asked again under its
number; a trial whose values the configuration refuses has no number. optuna-dashboard and notebooks can read the file
while the sweep is running.
"""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroevo.config.own_runs import is_own, remember
from neuroevo.config.schema import BUDGETS
from neuroevo.core.errors import NotTrustedError, UserError
from neuroevo.core.problems import ConfigError, Problem, inline, shown
from neuroevo.core.randomness import draw_seeds
from neuroevo.sweeps.points import refused
from neuroevo.sweeps.searches import make_pruner, make_sampler, require_optuna
from neuroevo.sweeps.section import values_of
from neuroevo.sweeps.space import Choice, Range, Space
from neuroevo.sweeps.sweep import Status, Sweep, Trial

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

DATABASE = "sweep.db"
NAME = "neuroevo"
_SEEDS = 1001  # a purpose of random numbers that no run draws
_ATTEMPTS = 100  # at values that a configuration accepts
_NOT_OWN = (
    "Optuna reads {}, which can run any code, and the sweep was not begun on this machine. If you trust whoever made "
    "it, say so with --trust; see docs/security.md"
)
# Settings that may change when a sweep is resumed; of configurations, games and seeds there may be more.
_FREE = ("parallel", "cluster", "out", "shared", "set", "normalize", "configs", "games", "implementations", "seeds")


class _Connection(sqlite3.Connection):
    """Connection on which what Optuna commits piece by piece becomes one transaction, so that a kill tears nothing."""

    _open = False

    def commit(self) -> None:
        """Commit, unless a transaction() is open."""
        if not self._open:
            super().commit()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Store all that is written in the block, or none of it."""
        if self._open:
            yield
            return
        self.execute("BEGIN IMMEDIATE")
        self._open = True
        try:
            yield
        except BaseException:
            with suppress(sqlite3.ProgrammingError):  # SQLAlchemy closes it at an interrupt
                self.rollback()
            raise
        else:
            self.execute("COMMIT")
        finally:
            self._open = False


class Study:
    """The trials of a sweep.

    Args:
        out: The sweep's folder.
        trust: Whether to read a file of others.
        new: Whether the file may be missing.

    Raises:
        NotTrustedError: The sweep was not begun here by this user.
        UserError: There is no sweep, or it cannot be read.
    """

    def __init__(self, out: Path, trust: bool = False, new: bool = False):
        require_optuna()
        self.file = out / DATABASE
        self._identities: dict[int, int] = {}
        if not self.file.is_file() and not new:
            raise UserError(f"there is no sweep in {out}: expected {self.file}")
        if new:
            self.file.touch()
        if self.file.stat().st_size and not trust and not is_own(self.file):
            raise NotTrustedError(_NOT_OWN.format(self.file))
        if new:
            remember(self.file)  # before it has contents: this process may be killed while it makes the tables
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
        except Exception as error:  # SQLAlchemy's, SQLite's and Optuna's
            reason = (str(error.__cause__ or error).splitlines() or [type(error).__name__])[0]
            raise UserError(f"{self.file} cannot be read: {reason}") from None

    def _connect(self) -> _Connection:
        self._connection = sqlite3.connect(self.file, timeout=60, check_same_thread=False, factory=_Connection)
        return self._connection

    def begin(self, sweep: Sweep, over: Callable[[Trial], bool]) -> None:
        """Record what a new sweep is, or check that a resumed one is the same; add the trials that are known.

        Args:
            sweep: The sweep.
            over: Whether a budget of a finished trial is spent, which may have grown.

        Raises:
            ConfigError: The folder contains another sweep; the message names what differs.
        """
        generations = sweep.base.training.generations
        self.study.pruner = make_pruner(sweep.settings.pruner, sweep.settings.pruner_options, generations)
        with self._connection.transaction():
            self._begin(sweep, over)

    def _begin(self, sweep: Sweep, over: Callable[[Trial], bool]) -> None:
        self._check_same(sweep)
        latest = self._latest()
        names = {_trial(each).name for each in latest.values()}
        for number, trial in enumerate((each for each in sweep.points if each.name not in names), len(latest)):
            self._add(replace(trial, number=number), sweep.space)
        for number in latest.keys() - {trial.number for trial in self.trials(sweep)}:
            if latest[number].state.name == "WAITING":  # the file no longer says it, and it is not to begin
                self._storage.set_trial_state_values(self._id(latest[number]), _state("FAIL"))
        for trial in self.trials(sweep):
            if trial.status == "failed" or (trial.status == "finished" and not over(trial)):
                self._add(trial, sweep.space, latest[trial.number])

    def trials(self, sweep: Sweep | None = None) -> list[Trial]:
        """Return the trials, by number.

        Args:
            sweep: Whose; a grid's file may have named others before. None: all that there are.
        """
        found = [_trial(each) for _, each in sorted(self._latest().items())]
        if sweep is None or sweep.settings.search != "grid":
            return found
        names = {trial.name for trial in sweep.points}
        return [trial for trial in found if trial.name in names]

    def ask(self, sweep: Sweep) -> Trial:
        """Begin the next trial that waits, or a new one with values that the search chooses.

        Args:
            sweep: The sweep.

        Raises:
            ConfigError: The configuration refused everything that was chosen.
        """
        if any(each.state.name == "WAITING" for each in self.study.get_trials(deepcopy=False)):
            trial = _trial(self._frozen(self.study.ask().number))
            self._identities.pop(trial.number, None)  # of the one that failed
            return trial
        ((tables),) = sweep.tables.values()
        chosen = sweep.settings
        distributions = {key: _distribution(values) for key, values in sweep.space.items()}
        problems: list[Problem] = []
        for _ in range(_ATTEMPTS):
            with self._connection.transaction():
                count = len(self.study.get_trials(deepcopy=False))
                seed = draw_seeds(1, chosen.seed, 0 if chosen.search == "qmc" else count, _SEEDS)[0] % 2**32
                # A sampler for each trial, from what is stored: a resumed sweep chooses as an uninterrupted one.
                self.study.sampler = make_sampler(chosen.search, chosen.search_options, seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    asked = self.study.ask(distributions)
                values = {key: _value(of, asked.params[key]) for key, of in sweep.space.items()}
                problems = refused(tables, values)
                if not problems:
                    trial = sweep.trial(len(self._latest()), values)
                    for name, value in _attributes(trial).items():
                        asked.set_user_attr(name, value)
                    return replace(trial, status="running")
                self.study.tell(asked, state=_state("FAIL"))
        raise ConfigError(problems, f"each of {_ATTEMPTS} points that the search chose")

    def report(self, number: int, step: int, value: float | None) -> bool:
        """Note a trial's metric after so many generations.

        Args:
            number: The trial's.
            step: The generations.
            value: The metric; None and what is not finite is not noted.

        Returns:
            Whether the pruner ends the trial.
        """
        identity = self._identity(number)
        frozen = self._storage.get_trial(identity)
        known, stopped = frozen.intermediate_values, frozen.user_attrs.get("stopped")
        if stopped is not None:  # by a process that was killed
            return step >= int(stopped)
        if value is None or not math.isfinite(value) or step in known:
            return False
        with self._connection.transaction():  # asha notes the rung before it answers, and would not answer again
            self._storage.set_trial_intermediate_value(identity, step, float(value))
            pruned = self.study.pruner.prune(self.study, self._storage.get_trial(identity))
            if pruned:
                self.note(number, stopped=step)
        return pruned

    def note(self, number: int, **attributes: Any) -> None:
        """Change attributes of a trial, such as its folder and its values."""
        identity = self._identity(number)
        with self._connection.transaction():
            for name, value in attributes.items():
                self._storage.set_trial_user_attr(identity, name, value)

    def tell(self, number: int, status: Status, value: float | None = None, reason: str = "") -> Trial:
        """End a trial.

        Args:
            number: The trial's.
            status: "finished", "stopped" or "failed".
            value: Its metric, of a finished one.
            reason: Of a failure.
        """
        identity = self._identity(number)
        if value is None or math.isnan(value):
            value = -math.inf  # Optuna takes no finished trial without one
        state = _state({"finished": "COMPLETE", "stopped": "PRUNED", "failed": "FAIL"}[status])
        with self._connection.transaction():
            if reason:
                self.note(number, reason=reason)
            self.study.tell(
                self._storage.get_trial_number_from_id(identity), value if status == "finished" else None, state=state
            )
        return _trial(self._storage.get_trial(identity))

    def get(self, name: str) -> Any:
        """Return an attribute of the sweep; None if there is none."""
        return self.study.user_attrs.get(name)

    def set(self, name: str, value: Any) -> None:
        """Note an attribute of the sweep."""
        self.study.set_user_attr(name, value)

    def _latest(self) -> dict[int, FrozenTrial]:
        """Return Optuna's newest trial for each number."""
        found = self.study.get_trials(deepcopy=False)
        return {each.user_attrs["number"]: each for each in found if "number" in each.user_attrs}

    def _frozen(self, number: int) -> FrozenTrial:
        return self.study.get_trials(deepcopy=False)[number]

    def _identity(self, number: int) -> int:
        """Return what Optuna's storage calls the trial that is trained. To list all trials each time takes long."""
        if number not in self._identities:
            self._identities[number] = self._id(self._latest()[number])
        return self._identities[number]

    def _id(self, frozen: FrozenTrial) -> int:
        study = self._storage.get_study_id_from_name(NAME)
        return self._storage.get_trial_id_from_study_id_trial_number(study, frozen.number)

    def _add(self, trial: Trial, space: Space, before: FrozenTrial | None = None) -> None:
        """Add a trial that waits; before: the same as it was, of which the pruner has seen the first generations."""
        import optuna

        params: dict[str, Any] = {key: _label(space[key], value) for key, value in trial.values.items() if key in space}
        distributions = {key: _distribution(space[key]) for key in params}
        self.study.add_trial(
            optuna.trial.create_trial(
                state=_state("WAITING"),
                params=params,
                distributions=distributions,
                user_attrs=_attributes(trial),
                system_attrs=None if before is None else before.system_attrs,
                intermediate_values=None if before is None else before.intermediate_values,
            )
        )

    def _check_same(self, sweep: Sweep) -> None:
        now = json.loads(json.dumps(_identity(sweep)))
        before = self.get("sweep")
        if before is None:
            self.set("sweep", now)
            return
        begun = f"the sweep in {sweep.out} was begun with"
        both = {name: origin for name, origin in before["configs"].items() if name in now["configs"]}
        if not both and sweep.settings.search != "grid":  # a grid may continue with others
            reason = f"{begun} {', '.join(before['configs'])}; expected that, or another --out"
            raise ConfigError([Problem("sweep.configs", reason, ", ".join(now["configs"]))])
        common = {name: now["configs"][name] for name in both}
        self.set("sweep", {**before, "configs": {**before["configs"], **now["configs"]}} if both == common else before)
        before, now = {**before, "configs": both}, {**now, "configs": common}
        problems = []
        for key in dict.fromkeys([*before, *now]):
            if before.get(key) != now.get(key):
                reason = f"{begun} {shown(before.get(key))}; expected that, or another --out"
                problems.append(Problem(f"sweep.{key}", reason, now.get(key)))
        if problems:
            raise ConfigError(problems)


def _identity(sweep: Sweep) -> dict[str, Any]:
    """Return what trials depend on."""
    chosen, training = sweep.settings, sweep.base.training
    free = _FREE if chosen.search == "pbt" else (*_FREE, "trials")
    settings = {key: value for key, value in values_of(chosen).items() if key not in free}
    if chosen.search != "grid" or chosen.pruner != "none":  # finished trials, with which others are compared, stay so
        settings["budgets"] = {key: getattr(training, key) for key in BUDGETS}
    origins = {f"{label}/{game}": config.origin() for (label, game), config in sweep.configs.items()}
    return {**settings, "configs": origins}


def _attributes(trial: Trial) -> dict[str, Any]:
    known = asdict(trial)
    return {name: known[name] for name in ("number", "label", "game", "seed", "values", "folder")}


def _trial(frozen: FrozenTrial) -> Trial:
    attributes = frozen.user_attrs
    status: dict[str, Status] = {
        "WAITING": "waiting",
        "RUNNING": "running",
        "COMPLETE": "finished",
        "PRUNED": "stopped",
        "FAIL": "failed",
    }
    return Trial(
        number=attributes["number"],
        label=attributes["label"],
        game=attributes["game"],
        seed=attributes["seed"],
        values=attributes["values"],
        folder=attributes["folder"],
        status=status[frozen.state.name],
        reason=attributes.get("reason", ""),
        stopped=attributes.get("stopped"),
    )


def _state(name: str) -> Any:
    from optuna.trial import TrialState

    return TrialState[name]


def _distribution(values: Choice | Range) -> BaseDistribution:
    """Return Optuna's word for a key's values. It chooses among texts where TOML has lists or tables."""
    from optuna import distributions

    if isinstance(values, Choice):
        return distributions.CategoricalDistribution([_label(values, value) for value in values.values])
    if values.integer:
        return distributions.IntDistribution(int(values.low), int(values.high), log=values.log)
    return distributions.FloatDistribution(values.low, values.high, log=values.log)


def _label(values: Choice | Range, value: Any) -> Any:
    if isinstance(values, Choice) and any(isinstance(each, list | dict) for each in values.values):
        return inline(value)
    return value


def _value(values: Choice | Range, chosen: Any) -> Any:
    if isinstance(values, Choice):
        return next(value for value in values.values if _label(values, value) == chosen)
    return values.clip(chosen)
