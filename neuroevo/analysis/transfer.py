"""Evaluation of a run's network with the same robot in another simulator: `neuroevo evaluate RUN --env ...`.

If only the first numbers of both observations have the same meaning, the weights of the network's remaining inputs are
removed, as if these inputs always had their mean, and the remaining numbers of the new observation get zero weights.
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
    """Elite of a run with its network adapted to another environment.

    Attributes:
        config: Configuration of the run with the target environment.
        evaluator: Evaluator of the target environment; the caller closes it.
        elite: Elite with the adapted network.
        note: Phrase that describes how the network uses the target environment's observations.
    """

    config: Config
    evaluator: AnyEvaluator
    elite: Elite
    note: str


def transfer(config: Config, elite: Elite, env: Env) -> Transfer:
    """Adapt an elite to another environment.

    Args:
        config: Configuration of the run.
        elite: Elite of the run.
        env: The target environment.

    Raises:
        UserError: The environment does not exist, or is not known to have the same robot and actions.
    """
    there = replace(config, env=env).on_this_machine()
    if there.environment.accelerated != config.environment.accelerated:
        there = replace(there, hardware=Hardware(config.hardware.device))  # the rest is specific to the run's simulator
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
            note = f"an observation has {same} numbers there, as in the run"
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
    """Return how many leading numbers of both observations have the same meaning; None: all, and their sizes are equal.

    For a custom robot, the user is responsible for the meaning of the observations.
    """
    if here.continuous_actions and (here.name == there.name or _is_users_own(here) or _is_users_own(there)):
        return None
    tasks = {f"brax:{task}": (each.name, each.alike) for task, each in COUNTERPARTS.items()}
    for one, other in ((here, there), (there, here)):
        if one.name in tasks and tasks[one.name][0] == other.name:
            return tasks[one.name][1]
    if not here.continuous_actions:
        raise UserError(f"{here.given_name} has no counterpart in another simulator, expected a run on a robot")
    own = tasks.get(here.name, (next((task for task, each in tasks.items() if each[0] == here.name), None),))[0]
    expected = f"{here.name} or {own}" if own else here.name
    raise UserError(f"--env is {there.given_name!r}, expected an environment of the run's robot: {expected}")


def _is_users_own(env: Environment) -> bool:
    return env.family == "mjx"


def _note(before: int, after: int, same: int) -> str:
    if before == after == same:
        return f"the {same} numbers of an observation have the same meaning there"
    unseen = f"; its other {before - same} inputs are removed" if before > same else ""
    unknown = f"; {after - same} more numbers of the observation are ignored" if after > same else ""
    return f"the network uses the first {same} numbers, which have the same meaning there{unseen}{unknown}"


def _with_inputs(text: str, theta: np.ndarray, inputs: int, same: int) -> np.ndarray:
    """Return the weights of the network with a different number of inputs, of which the first `same` are unchanged.

    UserError: its first layers mix the inputs by operations without weights.
    """

    def of_inputs(weights: np.ndarray) -> np.ndarray:
        made = np.zeros((inputs, *weights.shape[1:]), np.float32)
        made[:same] = weights[:same]
        return made

    parts: list[np.ndarray] = []
    sees_inputs = True  # the layer's inputs are the observation's numbers
    for layer in unpack_weights(text, theta).layers:
        if sees_inputs and layer.kind == "graph":
            raise UserError("the network's first layer is a graph, expected one with weights for all inputs")
        if sees_inputs and layer.kind == "layer_norm":
            raise UserError("the network's first layer normalizes the observation, expected one with weights")
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
