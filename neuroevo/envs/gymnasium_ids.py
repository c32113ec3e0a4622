"""Our environments by names of Gymnasium's registry: neuroevo/Frostbite-v5, neuroevo/Ant-v5, ...

Importing this module registers them for gymnasium.make and make_vec; `import neuroevo` does so once Gymnasium is loaded
too, as in gymnasium.make_vec("neuroevo:neuroevo/Ant-v5"). None of it loads native code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from neuroevo.envs.environment import Environment
from neuroevo.envs.registry import FAMILIES

_MAKE, _MAKE_VEC = "neuroevo.envs.single:SingleEnv", "neuroevo.envs.vector:make_vec"


def spec_of(environment: Environment, keywords: Mapping[str, Any]) -> EnvSpec:
    """Return the specification from which gymnasium.make_vec makes the same as make_vec().

    Args:
        environment: The environment.
        keywords: Keywords of make_vec(), name and num_envs included; one that is None counts as left out.
    """
    meant = environment.named_options(environment.given_name)
    ids = {  # not that of the same game under other rules
        environment.find(known): env_id
        for env_id, known in environment.gymnasium_ids().items()
        if environment.named_options(known) == meant
    }
    given = {key: value for key, value in keywords.items() if value is not None}
    return EnvSpec(
        f"neuroevo/{ids.get(environment.name, environment.name)}",
        vector_entry_point=_MAKE_VEC,
        kwargs={**given, "vectorization_mode": "vector_entry_point"},
    )


def _register() -> None:
    for family in FAMILIES:
        for env_id, name in family.gymnasium_ids().items():
            gymnasium.register(
                f"neuroevo/{env_id}", entry_point=_MAKE, vector_entry_point=_MAKE_VEC, kwargs={"name": name}
            )


_register()
