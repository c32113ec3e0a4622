"""What is wrong with a configuration that only shows where its run would start: options that an emulator refuses, and
another run to start from that is missing or does not fit."""

from __future__ import annotations

from collections.abc import Sequence

from neuroevo.config.schema import Config
from neuroevo.core.errors import NativeError, UserError
from neuroevo.envs import registry
from neuroevo.envs.gymnasium import family
from neuroevo.native.env_pool import EnvPool
from neuroevo.runs.warm_start import first_reference, first_state


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
    refuse(problems(config), source)


def _try_environment(config: Config) -> None:
    """Makes the environment once. UserError: the native code refuses an option."""
    recipe = registry.resolve(config.env.name, config.env.options)
    if recipe.family == family.FAMILY:
        return
    try:
        EnvPool(recipe, 1)
    except NativeError as error:
        raise UserError(f"{recipe.name} cannot be made: {str(error).splitlines()[0]}") from None


def refuse(found: Sequence[str], source: str) -> None:
    """UserError lists these problems, if there are any."""
    if found:
        lines = "".join(f"\n  {problem}" for problem in found)
        raise UserError(f"{len(found)} problem{'s' if len(found) > 1 else ''} in {source}:{lines}")
