"""An elite's network with its weights, ready for export, and a description of how to turn its outputs into actions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuroevo.analysis.replay import Replay
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.networks.layers import Layers, unpack_weights
from neuroevo.runs.reader import Elite


@dataclass(frozen=True)
class Exported:
    """Network with its weights and their provenance.

    Attributes:
        name: The name of the Keras model.
        text: The layer list, as custom_ops/networks/network.h describes it.
        theta: The weights, float32 [D].
        genome: The genome that the weights were made from.
        env: The name of the environment that it played.
        dtype: The arithmetic in which the run evaluated the network, "float32" or "int8".
        observations: The dtype of the environment's observations; None for the dtype of the network's input.
        normalizer: The normalizer of its observations; None if they are not normalized.
        action_low: Lower bounds of a continuous action, float32 [A]; None for discrete actions.
        action_high: Upper bounds of a continuous action, float32 [A]; None for discrete actions.
        action_bins: Bins per dimension of a continuous action; 0 without bins.
        statistics: Statistics of its vbn layers, float32 [S], as returned by native.Population.statistics; required to
            export a network with vbn layers.
    """

    name: str
    text: str
    theta: np.ndarray
    genome: Genome
    env: str
    dtype: str = "float32"
    observations: str | None = None
    normalizer: Normalizer | None = None
    action_low: np.ndarray | None = None
    action_high: np.ndarray | None = None
    action_bins: int = 0
    statistics: np.ndarray | None = None

    @property
    def layers(self) -> Layers:
        """The network split into layers, each with its own weights.

        Raises:
            UserError: The network has vbn layers whose statistics are unknown.
        """
        parts = unpack_weights(self.text, self.theta, self.statistics)
        for layer in parts.layers:
            if layer.kind == "vbn" and layer.mean is None:
                raise UserError(f"{self.name} has vbn layers, expected their statistics in addition to its weights")
        return parts


def elite_network(config: Config, elite: Elite, generation: int, reference_batch: np.ndarray | None = None) -> Exported:
    """Prepare the network of an elite for export.

    Args:
        config: The configuration of the run that the elite comes from.
        elite: The genome, and the normalizer of its observations, if any.
        generation: The generation of the elite, which is part of the name of the Keras model.
        reference_batch: The run's observations [B, ...] from which vbn layers compute their statistics; None if the
            network has no such layers.

    Returns:
        The network with its weights.

    Raises:
        UserError: The environment does not exist.
    """
    name = f"{config.env.name}_{config.network.name}_generation_{generation}"
    if config.environment.accelerated:
        return _accelerated_network(config, elite, name)
    replay = Replay(config, [elite.genome], reference_batch=reference_batch)
    vector = replay.pool.action_dtype == np.float32
    return Exported(
        name,
        replay.network,
        replay.thetas()[0],
        elite.genome,
        config.env.name,
        config.network.dtype,
        observations=replay.pool.observation_dtype.name,
        normalizer=elite.normalizer,
        action_low=replay.pool.action_low if vector else None,
        action_high=replay.pool.action_high if vector else None,
        action_bins=config.network.action_bins,
        statistics=replay.population.statistics(int(replay.rows[0])),
    )


def _accelerated_network(config: Config, elite: Elite, name: str) -> Exported:
    """Return the network for a simulator on the accelerator, whose actions all lie in [-1, 1]."""
    from neuroevo.accelerated.start import make_evaluator

    with make_evaluator(config.environment, config.network) as evaluator:
        one = np.ones(evaluator.num_actions, np.float32)
        return Exported(
            name,
            evaluator.network_texts[0],
            evaluator.weights.theta(elite.genome),
            elite.genome,
            config.env.name,
            config.network.dtype,
            observations="float32",
            normalizer=elite.normalizer,
            action_low=-one,
            action_high=one,
            action_bins=config.network.action_bins,
        )


def how_to_act(network: Exported) -> str:
    """Describe how to convert the exported network's outputs to an action.

    Returns:
        A clause with this network's sizes, bounds and bins, such as "its output is float32 [K, 18]; ...".

    Raises:
        UserError: The network has vbn layers whose statistics are unknown.
    """
    return _outputs_to_action(network) + (_MEMORY if network.layers.recurrent else "")


def _outputs_to_action(network: Exported) -> str:
    outputs, low, high = network.layers.outputs, network.action_low, network.action_high
    if low is None or high is None:
        return f"its output is float32 [K, {outputs}]; the action is the index of the largest output, from 0"
    bounds = f"where low = {_numbers(low)} and high = {_numbers(high)}"
    if bins := network.action_bins:
        return (
            f"its output is float32 [K, {outputs}], {bins} per number of an action of {len(low)} numbers; with b the "
            f"index of the largest of these {bins}, from 0, a number is low + b * (high - low) / {bins - 1}, {bounds}"
        )
    with np.errstate(over="ignore"):
        bounded = np.isfinite(high - low)
    of = f"its output y is float32 [K, {outputs}]; an action's numbers are"
    if not bounded.any():
        return f"{of} y"
    rest = "" if bounded.all() else ", or y itself where high - low is not finite"
    return f"{of} low + (clip(y, -1, 1) + 1) / 2 * (high - low), {bounds}{rest}"


_MEMORY = (
    "; the network is recurrent: its inputs lstm_1_h, lstm_1_c, ... are zeros at the start of an episode, then the "
    "corresponding outputs of the previous step"
)


def _numbers(each: np.ndarray) -> str:
    """Format float32 [A] without loss of precision, as one number if all are equal."""
    texts = [str(number) for number in each]
    return texts[0] if len(set(texts)) == 1 else f"[{', '.join(texts)}]"
