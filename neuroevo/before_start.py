"""What is wrong with a configuration that only shows where its run would start: options that an emulator refuses, and
another run to start from that is missing or does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neuroevo import envs, gymnasium_envs
from neuroevo.config import Config
from neuroevo.errors import UserError
from neuroevo.native import EnvPool, NativeError
from neuroevo.warm_start import first_reference, first_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuroevo.suite_standing import Standing


def problems(config: Config, from_start: bool = True) -> list[str]:
    """All of them, as lines. from_start: whether the run begins; one that goes on starts from its own checkpoint.

    Environments of Gymnasium are not tried: that takes processes and seconds.
    """
    found = []
    try:
        _try_environment(config)
    except UserError as error:
        found.append(str(error))
    try:
        if from_start and config.training.start_from is not None:
            first_state(config)
            first_reference(config)
    except UserError as error:
        found.append(str(error))
    return found


def check(config: Config, source: str) -> None:
    """UserError lists all problems of the configuration in `source`."""
    _raise(problems(config), source)


def check_runs(standings: Sequence[Standing], source: str) -> None:
    """UserError lists all problems of the runs that are not finished; each environment and start is tried once.

    A run that another one of them starts from need not be there yet.
    """
    folders = {each.run.folder.resolve() for each in standings}
    found: list[str] = []
    tried: list[object] = []
    for each in (each for each in standings if each.status != "finished"):
        config = each.run.config
        start = config.training.start_from
        from_start = each.status == "not started" and start is not None and Path(start).resolve() not in folders
        what = (config.env, (start, config.network, config.algorithm) if from_start else None)
        if what not in tried:
            tried.append(what)
            found += problems(config, from_start)
    _raise(list(dict.fromkeys(found)), source)


def _try_environment(config: Config) -> None:
    """Makes the environment once. UserError: the native code refuses an option."""
    recipe = envs.resolve(config.env.name, config.env.options)
    if recipe.family == gymnasium_envs.FAMILY:
        return
    try:
        EnvPool(recipe, 1)
    except NativeError as error:
        raise UserError(f"{recipe.name} cannot be made: {str(error).splitlines()[0]}") from None


def _raise(found: Sequence[str], source: str) -> None:
    if found:
        lines = "".join(f"\n  {problem}" for problem in found)
        raise UserError(f"{len(found)} problem{'s' if len(found) > 1 else ''} in {source}:{lines}")
