"""Find problems of a configuration that would appear only when its run starts.

These are options that an emulator rejects, and a missing or incompatible run in training.start_from.
"""

from __future__ import annotations

from neuroevo.config.schema import Config
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.problems import Problem, problems_in
from neuroevo.native.env_pool import EnvPool
from neuroevo.sessions.warm_start import first_state


def problems(config: Config, from_start: bool = True, trust: bool = False) -> list[Problem]:
    """Return the problems. Environments that are slow to make, such as Gymnasium environments, are not checked.

    Args:
        config: The configuration.
        from_start: Whether the run is new; a resumed run does not use training.start_from.
        trust: Allow external code and models referenced by the run in training.start_from.
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
    """Make the environment once. UserError: the native code rejects an option."""
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
