"""A run's network in another environment, of the same robot in another simulator: `neuroevo evaluate RUN --env ...`.

Where the first numbers of both observations mean the same and the others do not, the network loses the weights of its
other inputs, as if it saw their mean, and gets none for what it never saw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from neuroevo.config.schema import Config, Env, Hardware
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.envs.brax import COUNTERPARTS
from neuroevo.envs.environment import Environment
from neuroevo.networks.layers import unpack_weights
from neuroevo.runs.reader import Elite
from neuroevo.sessions.evaluators import make_evaluator

if TYPE_CHECKING:
    from neuroevo.sessions.evaluators import AnyEvaluator


@dataclass(frozen=True)
class Transfer:
    """An elite of a run in another environment.

    Attributes:
        config: The run's, with the other environment.
        evaluator: Of that environment; whoever asked for it closes it.
        elite: With the network that plays there.
        note: What its network sees there, a phrase.
    """

    config: Config
    evaluator: AnyEvaluator
    elite: Elite
    note: str


def transfer(config: Config, elite: Elite, env: Env) -> Transfer:
    """Take an elite to another environment.

    Args:
        config: The run's.
        elite: Of the run.
        env: The other environment.

    Raises:
        UserError: There is no such environment, or it is not known to be the same robot with the same actions.
    """
    there = replace(config, env=env).on_this_machine()
    if there.environment.accelerated != config.environment.accelerated:
        there = replace(there, hardware=Hardware(config.hardware.device))  # the rest is of the run's own simulator
    alike = _alike(config.environment, there.environment)
    with make_evaluator(config.on_this_machine()) as home:
        before, actions = home.observation_size, home.num_actions
        own, theta = elite.genome.network, home.weights.theta(elite.genome)
    evaluator = make_evaluator(there)
    try:
        after = evaluator.observation_size
        if evaluator.num_actions != actions:
            numbers = evaluator.num_actions
            raise UserError(f"an action of {env.name} has {numbers} numbers, expected {actions} as in the run")
        same = min(before, after) if alike is None else min(alike, before, after)
        if alike is None and before != after:
            raise UserError(f"an observation of {env.name} has {after} numbers, expected {before} as in the run")
        note = _note(before, after, same)
        if config.environment.name != there.environment.name and alike is None:
            note = f"{same} numbers are observed there, as in the run"
        if same < before or after != before:
            text = own if isinstance(own, str) else config.network.vector_text(before, actions)
            theta = _with_inputs(text, theta, after, same)
            network = own.replace(f"float32 {before};", f"float32 {after};", 1) if isinstance(own, str) else own
            elite = Elite(Genome(Center(theta), network), _seen(elite.normalizer, after, same))
    except BaseException:
        evaluator.close()
        raise
    return Transfer(there, evaluator, elite, note)


def _alike(here: Environment, there: Environment) -> int | None:
    """Return how many leading numbers of both observations mean the same; None means all of equally many.

    Of a robot of the user's own the user knows whether they do.
    """
    if here.continuous_actions and (here.name == there.name or _is_users_own(here) or _is_users_own(there)):
        return None
    tasks = {f"brax:{task}": (each.name, each.alike) for task, each in COUNTERPARTS.items()}
    for one, other in ((here, there), (there, here)):
        if one.name in tasks and tasks[one.name][0] == other.name:
            return tasks[one.name][1]
    if not here.continuous_actions:
        raise UserError(f"{here.given_name} plays in no other simulator, expected a run on a robot")
    own = tasks.get(here.name, (next((task for task, each in tasks.items() if each[0] == here.name), None),))[0]
    expected = f"{here.name} or {own}" if own else here.name
    raise UserError(f"--env is {there.given_name!r}, expected one of the run's robot: {expected}")


def _is_users_own(env: Environment) -> bool:
    return env.family == "mjx"


def _note(before: int, after: int, same: int) -> str:
    if before == after == same:
        return f"the {same} numbers of an observation mean the same there"
    unseen = f"; its other {before - same} inputs are left out" if before > same else ""
    unknown = f"; {after - same} more that are observed there it does not see" if after > same else ""
    return f"the network sees the first {same} numbers, which mean the same there{unseen}{unknown}"


def _with_inputs(text: str, theta: np.ndarray, inputs: int, same: int) -> np.ndarray:
    """Return the weights of the network with other inputs, of which the first ones are the same.

    UserError: its first layers mix the inputs in another way than by weights.
    """

    def of_inputs(weights: np.ndarray) -> np.ndarray:
        made = np.zeros((inputs, *weights.shape[1:]), np.float32)
        made[:same] = weights[:same]
        return made

    parts: list[np.ndarray] = []
    sees_inputs = True  # the layer's inputs are the observation's numbers
    for layer in unpack_weights(text, theta).layers:
        if sees_inputs and layer.kind == "graph":
            raise UserError("the network's first layer is a graph, expected one that weighs all of its inputs")
        if sees_inputs and layer.kind == "layer_norm":
            raise UserError("the network's first layer normalizes what it observes, expected one that weighs it")
        for weights in (layer.kernel, layer.recurrent_kernel, layer.bias):
            if weights is not None:
                parts.append(of_inputs(weights) if sees_inputs else weights)
                sees_inputs = sees_inputs and layer.kernel is None
    return np.concatenate([part.reshape(-1) for part in parts])


def _seen(normalizer: Normalizer | None, inputs: int, same: int) -> Normalizer | None:
    if normalizer is None:
        return None
    mean, std = np.zeros(inputs), np.ones(inputs)
    mean[:same], std[:same] = normalizer.mean[:same], normalizer.std[:same]
    return Normalizer(normalizer.number, mean, std)
