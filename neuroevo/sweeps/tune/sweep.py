"""A sweep: what its file says, checked before anything starts.

[sweep]
config = "inverted_pendulum"      # a preset or a file, those beside this file first
trials = 20
search = "random"                 # or "grid", "optuna"
scheduler = "none"                # or "asha", "pbt"

[sweep.space]
"algorithm.sigma" = {log_uniform = [1e-3, 1e-1]}
"network.hidden" = [[8], [16, 16]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroevo.config.load import load_config
from neuroevo.config.schema import Config
from neuroevo.config.sources import key_of, read
from neuroevo.core.problems import ConfigError, Problem, refuse
from neuroevo.sweeps.runner import shares
from neuroevo.sweeps.section import beside, collected, folder_of, read_section, values_of
from neuroevo.sweeps.tune.checks import default_metric, problems_of_sweep
from neuroevo.sweeps.tune.points import SEED, Values, all_points, with_seed
from neuroevo.sweeps.tune.settings import VALIDATION, SweepSettings, budget
from neuroevo.sweeps.tune.space import Choice, Range, parse_space


@dataclass(frozen=True)
class Sweep:
    """A sweep.

    Attributes:
        settings: What its file says, with a metric.
        space: The values that keys may have.
        tables: Those of the configuration that all trials share.
        seed: What the trials' seeds are drawn from; None: they have the configuration's.
        points: Each trial's values, with its seed; None where the search chooses them as it goes.
        trials: How many trials there are.
        out: The sweep's folder, absolute.
        base: The configuration of these tables.
        trust: Whether to trust what others have put there, or that a run's configuration names.
    """

    settings: SweepSettings
    space: Mapping[str, Choice | Range]
    tables: Mapping[str, Any]
    seed: int | None
    points: list[Values] | None
    trials: int
    out: Path
    base: Config
    trust: bool = False

    @property
    def metric(self) -> str:
        """The column that is to be large."""
        return self.settings.metric or VALIDATION

    @property
    def budget(self) -> float | None:
        """That of the shared configuration in units of the scheduler's time."""
        return budget(self.tables, self.settings.time)


def load_sweep(
    path: Path | str,
    overrides: Sequence[str] = (),
    out: Path | None = None,
    concurrent: int | None = None,
    trust: bool = False,
) -> Sweep:
    """Reads a sweep's file and checks every trial's configuration, as far as it is known.

    Args:
        path: The file.
        overrides: Changes to the configuration, after the sweep's own.
        out: The sweep's folder, instead of its own.
        concurrent: How many trials at a time, instead of its own.
        trust: Whether to trust what others have put into the folder, or what a run's configuration names.

    Returns:
        The sweep.

    Raises:
        ConfigError: The sweep or a configuration has problems; all of them.
        UserError: There is no such file, or it cannot be read.
    """
    path = Path(path)
    chosen = read_section(path, "sweep", SweepSettings)
    changes = [*chosen.set, *overrides]
    changed = set(map(key_of, changes))
    space, problems = parse_space(chosen.space)
    if not chosen.space:
        problems.append(Problem("sweep.space", "expected at least one key"))
    problems += [Problem(f"sweep.space.{key}", "set says that") for key in space if key in changed]
    source = beside(chosen.config, path.parent)
    base = None
    with collected(problems):
        base = load_config(source, changes, trust=trust)
    if base is None:
        raise ConfigError(problems, str(path))
    at_a_time = concurrent or chosen.concurrent
    own = base.network.needs_reference or base.environment.accelerated  # statistics, or a program
    shared = chosen.shared and not own
    tables = read(source, changes).tables
    if not shared:
        tables = _with_threads(tables, base, at_a_time)
    seed = None if SEED in changed else chosen.seed
    problems += problems_of_sweep(chosen, space, tables, base)
    refuse(problems, str(path))
    points = None
    if chosen.search != "optuna":
        try:
            points = all_points(space, tables, chosen.search, chosen.trials or 1, chosen.seed)
        except ConfigError as error:
            raise ConfigError(error.problems, error.source or str(path)) from None
        points = [with_seed(values, tables, seed, number) for number, values in enumerate(points)]
    metric = chosen.metric or default_metric(base)
    folder = folder_of(path, chosen.out, out).absolute()
    final = SweepSettings(**{**values_of(chosen), "metric": metric, "concurrent": at_a_time, "shared": shared})
    trials = len(points) if points is not None else chosen.trials or 1
    return Sweep(final, space, tables, seed, points, trials, folder, base, trust)


def _with_threads(tables: dict[str, Any], base: Config, concurrent: int) -> dict[str, Any]:
    """The tables with a trial's share of this machine's threads, unless they say how many."""
    share = shares(concurrent)[0]
    if share is None or base.hardware.threads is not None:
        return tables
    return {**tables, "hardware": {**tables.get("hardware", {}), "threads": share}}
