"""What is wrong with a configuration and shows only where its run would start.

That is: options that an emulator refuses, and another run to start from that is missing or does not fit.
"""

from __future__ import annotations

from neuroevo.config.schema import Config
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.problems import Problem, problems_in
from neuroevo.native.env_pool import EnvPool
from neuroevo.sessions.warm_start import first_state


def problems(config: Config, from_start: bool = True, trust: bool = False) -> list[Problem]:
    """Return the problems. Environments that take long to make, as those of Gymnasium, are not tried.

    Args:
        config: What a run is to be made of.
        from_start: Whether the run begins; a resumed one starts from its own state.
        trust: Whether to run code and read models that a run to start from names, whoever made it.
    """
    found: list[Problem] = []
    try:
        _try_environment(config)
    except UserError as error:
        found += problems_in(error)
    try:
        if from_start and config.training.start_from is not None:
            first_state(config, trust)
    except UserError as error:
        found += problems_in(error)
    return found


def _try_environment(config: Config) -> None:
    """Make the environment once. UserError: the native code refuses an option."""
    environment = config.environment
    if environment.accelerated:
        return
    spec = environment.spec
    if not environment.tried_at_preflight:
        return
    try:
        EnvPool(spec, 1)
    except NativeError as error:
        raise UserError(f"{spec.name} cannot be made: {str(error).splitlines()[0]}") from None
