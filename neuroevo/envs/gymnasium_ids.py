"""Registration of neuroevo's environments in Gymnasium: neuroevo/Frostbite-v5, neuroevo/Ant-v5, ...

Importing this module registers them for gymnasium.make and make_vec; `import neuroevo` does so once Gymnasium has been
imported, as in gymnasium.make_vec("neuroevo:neuroevo/Ant-v5"). Registration does not load native code.
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
    """Return the specification with which gymnasium.make_vec creates the same environment as make_vec().

    Args:
        environment: The environment.
        keywords: Keyword arguments of make_vec(), including name and num_envs; those that are None are ignored.
    """
    meant = environment.named_options(environment.given_name)
    ids = {  # excluding ids of the same game with other options
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
