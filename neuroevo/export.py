"""An elite as a network that stands alone: as a Keras model, as a SavedModel, or as plain arrays.

keras        one .keras file of built-in layers only, for keras.models.load_model
savedmodel   a folder for tf.saved_model.load, serving engines and converters; signature "serving_default"
npz          arrays for numpy.load: `conv_1.kernel`, `conv_1.bias`, ... (of a vbn layer, which makes
             (x - mean) * factor, `vbn_1.mean` and `vbn_1.factor`); and, as text, `network` (the layer list that
             custom_ops/networks/network.h describes), `dtype`, `genome` (JSON) and `env`. Of a run in integers also
             what it played with: int8 `conv_1.kernel_int8` and `conv_1.exponent` (k of custom_ops/networks/int8).
             Where observations are normalized `normalizer.mean` and `normalizer.std`, and where an action is a vector
             `action_low`, `action_high` and `action_bins` (B, or 0)

A network that played in integers is written with the float32 weights that they were rounded from: its outputs are close
to those of the run, and in a few steps of a hundred it acts otherwise. The arrays of an npz are enough to play exactly.

The input is a batch of observations as the environment makes them (uint8 [K, 84, 84, 4] for Atari, float64 [K, n] for
MuJoCo), which the network normalizes itself; the output is float32 [K, A], and the action taken the greatest output's
index. Where an action is a vector of A numbers, it is low + (clip(output, -1, 1) + 1) / 2 * (high - low) between the
bounds of each, or the output itself where these are not finite. With B bins a number the output is [K, A * B], and of
each number's B outputs the greatest one's index b stands for low + b * (high - low) / (B - 1).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuroevo.config import Config
from neuroevo.errors import UserError
from neuroevo.genome import Genome
from neuroevo.genome_json import genome_to_json
from neuroevo.int8 import quantized
from neuroevo.layers import Layer, Layers, take_apart
from neuroevo.metrics_files import Elite
from neuroevo.normalization import CLIP, Normalizer
from neuroevo.replay import Replay

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Exported:
    """A network with its weights: the model's name, text (the layer list), theta float32 [D], and where it is from.

    dtype: what it was evaluated in there. observations: the dtype of its environment's observations, by default that of
    the network's input. normalizer: what it sees them through. action_low, action_high: float32 [A], bounds of an
    action that is a vector; None for another. action_bins: bins of each of its numbers, or 0. statistics: float32 [S]
    of its vbn layers, without which a network that has some is not to be exported (native.Population.statistics).
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
        """The network taken apart. UserError: the statistics of its vbn layers are not known."""
        parts = take_apart(self.text, self.theta, self.statistics)
        for layer in parts.layers:
            if layer.kind == "vbn" and layer.mean is None:
                raise UserError(f"{self.name} has vbn layers, expected their statistics beside its weights")
        return parts


def elite_network(config: Config, elite: Elite, name: str, reference: np.ndarray | None = None) -> Exported:
    """The network of an elite of a configuration's run; reference: the run's, of what its vbn layers take statistics.

    UserError: there is no such environment.
    """
    replay = Replay(config, [elite.genome], reference=reference)
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


def how_to_act(network: Exported) -> str:
    """How an action comes of the exported network's outputs, with the network's own numbers, as half a sentence."""
    outputs, low, high = network.layers.outputs, network.action_low, network.action_high
    if low is None:
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
    """float32 [A] so that the same numbers can be read from it; one where all are equal."""
    texts = [str(number) for number in each]
    return texts[0] if len(set(texts)) == 1 else f"[{', '.join(texts)}]"


def to_keras(network: Exported) -> keras.Model:
    """The network as a Keras model of built-in layers; loads TensorFlow."""
    from neuroevo.quiet import load_tensorflow

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
        if layer.kind == "vbn":
            made.moving_mean.assign(layer.mean)
            made.moving_variance.assign(layer.factor.astype(np.float64) ** -2 - made.epsilon)
    if len(x.shape) > 2:
        x = keras.layers.Flatten(name="flatten_outputs")(x)
    return keras.Model(inputs, x, name=re.sub(r"[^A-Za-z0-9_.-]", "_", network.name))  # all that TensorFlow takes


def to_arrays(network: Exported) -> dict[str, np.ndarray]:
    """The network as named arrays; texts are arrays of no dimensions."""
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
    """(x - mean) / std within [-CLIP, CLIP], in float64: clipping is a hard tanh of what is CLIP times smaller.

    Keras's own Normalization keeps mean and variance in float32 only.
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
    if layer.kind == "conv":
        height, width, _, filters = layer.kernel.shape
        return keras.layers.Conv2D(filters, (height, width), layer.stride, layer.padding, use_bias=use_bias, name=name)
    if layer.kind == "dense":
        return keras.layers.Dense(layer.kernel.shape[1], use_bias=use_bias, name=name)
    if layer.kind == "bias":  # no layer of Keras adds a bias alone; this one first multiplies by ones
        # Axes are spelled out: for "..." Keras 3.15 reports a shape with the sides in reverse.
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
    np.savez(path, **to_arrays(network))


@dataclass(frozen=True)
class Format:
    """suffix: what a name ends in. mark: a file that tells a folder of this format. save: writes to a new path."""

    suffix: str
    mark: str | None
    save: Callable[[Exported, Path], None]


FORMATS = {
    "keras": Format(".keras", None, _save_keras),
    "savedmodel": Format("", "saved_model.pb", _save_savedmodel),
    "npz": Format(".npz", None, _save_npz),
}
