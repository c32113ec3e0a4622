"""Export an elite as a network that works without neuroevo: a Keras model, a SavedModel or plain arrays.

keras        one .keras file of built-in layers only, for keras.models.load_model
savedmodel   a folder for tf.saved_model.load, serving engines and converters; signature "serving_default"
npz          arrays for numpy.load:
             - `conv_1.kernel`, `conv_1.bias`, and so on for every layer; a vbn layer, which computes
               (x - mean) * factor, has `vbn_1.mean` and `vbn_1.factor`
             - as text: `network` (the layer list, see custom_ops/networks/network.h), `dtype`, `genome` (JSON), `env`
             - for a run in int8 also the weights that it played with: `conv_1.kernel_int8` and `conv_1.exponent`
               (k of custom_ops/networks/int8)
             - for normalized observations: `normalizer.mean` and `normalizer.std`
             - for actions that are vectors: `action_low`, `action_high` and `action_bins` (B, or 0)

A network that played in int8 is exported with the float32 weights from which the integers were rounded: its outputs are
close to those of the run, and in a few steps of a hundred it chooses another action. The arrays of an npz file are
enough to play exactly as the run did.

The input is a batch of observations as the environment makes them (uint8 [K, 84, 84, 4] for Atari, float64 [K, n] for
MuJoCo), which the network normalizes itself. The output is float32 [K, A], and the action is the index of the largest
output. Where an action is a vector of A numbers, each is low + (clip(output, -1, 1) + 1) / 2 * (high - low) between its
bounds, or the output itself where its bounds are not finite. With B bins per number the output is [K, A * B]; if b is
the index of the largest of a number's B outputs, the number is low + b * (high - low) / (B - 1).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.analysis.replay import Replay
from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import CLIP, Normalizer
from neuroevo.networks.layers import Layer, Layers, take_apart
from neuroevo.networks.quantization import quantized
from neuroevo.runs.genome_json import genome_to_json
from neuroevo.runs.metrics_files import Elite

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Exported:
    """A network with its weights and where they come from.

    Attributes:
        name: The name of the Keras model.
        text: The layer list, as custom_ops/networks/network.h describes it.
        theta: The weights, float32 [D].
        genome: The genome that the weights were made from.
        env: The name of the environment that it played.
        dtype: The arithmetic that the run evaluated it in, "float32" or "int8".
        observations: The dtype of the environment's observations; None for that of the network's input.
        normalizer: The normalizer of its observations; None if they are not normalized.
        action_low: Lower bounds of an action that is a vector, float32 [A]; None if an action is an index.
        action_high: Upper bounds, likewise.
        action_bins: Bins per number of an action that is a vector; 0 if it has none.
        statistics: Statistics of its vbn layers, float32 [S], as native.Population.statistics gives them; a network
            with vbn layers cannot be exported without them.
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
            UserError: The network has vbn layers whose statistics are not known.
        """
        parts = take_apart(self.text, self.theta, self.statistics)
        for layer in parts.layers:
            if layer.kind == "vbn" and layer.mean is None:
                raise UserError(f"{self.name} has vbn layers, expected their statistics beside its weights")
        return parts


def elite_network(config: Config, elite: Elite, name: str, reference_batch: np.ndarray | None = None) -> Exported:
    """Makes the network of an elite ready for export.

    Args:
        config: The configuration of the run that the elite comes from.
        elite: The genome, and the normalizer of its observations if it has one.
        name: The name of the Keras model.
        reference_batch: The run's observations [B, ...] from which vbn layers take their statistics; None where the
            network has no such layers.

    Returns:
        The network with its weights.

    Raises:
        UserError: There is no such environment.
    """
    if config.environment.family.accelerated:
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
        statistics=replay.population.statistics(0),
    )


def _accelerated_network(config: Config, elite: Elite, name: str) -> Exported:
    """Of an environment whose simulator runs on the accelerator: there all actions lie in [-1, 1]."""
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
    """Describes how to turn the exported network's outputs into an action.

    Returns:
        A clause with this network's sizes, bounds and bins, such as "its output is float32 [K, 18]; ...".

    Raises:
        UserError: The network has vbn layers whose statistics are not known.
    """
    outputs, low, high = network.layers.outputs, network.action_low, network.action_high
    if low is None or high is None:
        return f"its output is float32 [K, {outputs}]; the action is the index of the greatest, from 0"
    bounds = f"where low = {_numbers(low)} and high = {_numbers(high)}"
    if bins := network.action_bins:
        return (
            f"its output is float32 [K, {outputs}], {bins} for each of an action's {len(low)} numbers; with b the "
            f"index of the greatest of these {bins}, from 0, a number is low + b * (high - low) / {bins - 1}, {bounds}"
        )
    with np.errstate(over="ignore"):
        bounded = np.isfinite(high - low)
    of = f"its output y is float32 [K, {outputs}]; an action's numbers are"
    if not bounded.any():
        return f"{of} y"
    rest = "" if bounded.all() else ", or y itself where high - low is not finite"
    return f"{of} low + (clip(y, -1, 1) + 1) / 2 * (high - low), {bounds}{rest}"


def _numbers(each: np.ndarray) -> str:
    """Writes float32 [A] so that the same numbers can be read back; one number where all are equal."""
    texts = [str(number) for number in each]
    return texts[0] if len(set(texts)) == 1 else f"[{', '.join(texts)}]"


def to_keras(network: Exported) -> keras.Model:
    """Builds the network as a Keras model of built-in layers; imports TensorFlow.

    Raises:
        UserError: The network has vbn layers whose statistics are not known.
    """
    from neuroevo.system.tensorflow_import import load_tensorflow

    load_tensorflow()
    import keras

    parts = network.layers
    x = inputs = keras.Input(parts.shape, dtype=network.observations or parts.dtype, name="observation")
    if parts.dtype == "uint8":
        x = keras.layers.Rescaling(1 / 255, name="rescaling")(x)
    if network.normalizer is not None:
        x = _normalized(x, network.normalizer)
    for layer in parts.layers:
        if layer.kind == "dense" and len(x.shape) > 2:
            x = keras.layers.Flatten(name=f"flatten_{layer.name}")(x)
        made = _keras_layer(layer, x.shape)
        x = made(x)
        if layer.kernel is not None:
            made.kernel.assign(layer.kernel)
        if layer.bias is not None:
            made.bias.assign(layer.bias)
        if layer.factor is not None:  # a vbn layer
            made.moving_mean.assign(layer.mean)
            made.moving_variance.assign(layer.factor.astype(np.float64) ** -2 - made.epsilon)
    if len(x.shape) > 2:
        x = keras.layers.Flatten(name="flatten_outputs")(x)
    return keras.Model(inputs, x, name=re.sub(r"[^A-Za-z0-9_.-]", "_", network.name))  # TensorFlow takes no other


def to_arrays(network: Exported) -> dict[str, np.ndarray]:
    """Returns the network as named arrays, which the module's docstring lists; texts are arrays of no dimensions.

    Raises:
        UserError: The network has vbn layers whose statistics are not known.
    """
    arrays = {
        f"{layer.name}.{what}": array
        for layer in network.layers.layers
        for what in ("kernel", "bias", "mean", "factor")
        if (array := getattr(layer, what)) is not None
    }
    if network.dtype == "int8":
        for layer in network.layers.layers:
            if layer.kernel is not None:
                arrays[f"{layer.name}.kernel_int8"], exponent = quantized(layer.kernel)
                arrays[f"{layer.name}.exponent"] = np.array(exponent, np.int32)
    if network.normalizer is not None:
        arrays |= {"normalizer.mean": network.normalizer.mean, "normalizer.std": network.normalizer.std}
    if network.action_low is not None:
        arrays |= {"action_low": network.action_low, "action_high": network.action_high}
        arrays["action_bins"] = np.array(network.action_bins, np.int32)
    texts = {
        "network": network.text,
        "dtype": network.dtype,
        "genome": json.dumps(genome_to_json(network.genome)),
        "env": network.env,
    }
    return {**arrays, **{name: np.array(text) for name, text in texts.items()}}


def _normalized(x: keras.KerasTensor, normalizer: Normalizer) -> keras.KerasTensor:
    """Adds layers that compute (x - mean) / std, clipped to [-CLIP, CLIP], in float64.

    Keras's own Normalization keeps mean and variance in float32. The clipping is a hard tanh between two scalings.
    """
    import keras

    axes, shape = string.ascii_letters[: len(x.shape)], x.shape[1:]
    scale = 1 / (CLIP * normalizer.std.reshape(shape))
    scaling = keras.layers.EinsumDense(
        f"{axes},{axes[1:]}->{axes}", shape, bias_axes=axes[1:], dtype="float64", name="normalization"
    )
    x = scaling(x)
    scaling.kernel.assign(scale)
    scaling.bias.assign(-normalizer.mean.reshape(shape) * scale)
    x = keras.layers.Activation("hard_tanh", dtype="float64", name="clipping")(x)
    return keras.layers.Rescaling(CLIP, dtype="float64", name="clipping_range")(x)


def _keras_layer(layer: Layer, shape: tuple[int | None, ...]) -> keras.Layer:
    import keras

    name, use_bias = layer.name, layer.bias is not None
    if layer.kernel is not None and layer.kind == "conv":
        height, width, _, filters = layer.kernel.shape
        return keras.layers.Conv2D(filters, (height, width), layer.stride, layer.padding, use_bias=use_bias, name=name)
    if layer.kernel is not None:
        return keras.layers.Dense(layer.kernel.shape[1], use_bias=use_bias, name=name)
    if layer.kind == "bias":  # Keras has no layer that only adds a bias; this one first multiplies by ones
        # Axes are spelled out: for "..." Keras 3.15 reports a shape with its sides reversed.
        axes = string.ascii_letters[: len(shape)]
        equation, last = f"{axes},{axes[-1]}->{axes}", axes[-1]
        return keras.layers.EinsumDense(equation, shape[1:], bias_axes=last, kernel_initializer="ones", name=name)
    if layer.kind == "vbn":
        return keras.layers.BatchNormalization(center=False, scale=False, epsilon=1e-3, name=name)
    return keras.layers.Activation(layer.kind, name=name)


def _save_keras(network: Exported, path: Path) -> None:
    to_keras(network).save(path)


def _save_savedmodel(network: Exported, path: Path) -> None:
    to_keras(network).export(path, format="tf_saved_model", verbose=False)


def _save_npz(network: Exported, path: Path) -> None:
    arrays: dict[str, Any] = to_arrays(network)  # Any, since NumPy's types have a flag among the keyword arguments
    np.savez(path, **arrays)


@dataclass(frozen=True)
class Format:
    """A format to export to.

    Attributes:
        suffix: The end of the file's name; "" for a folder.
        mark: A file by which a folder of this format is recognized; None if the format is one file.
        save: Writes a network to a path where nothing is yet.
    """

    suffix: str
    mark: str | None
    save: Callable[[Exported, Path], None]


FORMATS = {
    "keras": Format(".keras", None, _save_keras),
    "savedmodel": Format("", "saved_model.pb", _save_savedmodel),
    "npz": Format(".npz", None, _save_npz),
}
