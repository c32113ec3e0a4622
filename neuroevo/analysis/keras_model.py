"""Conversion of networks to Keras models of built-in layers; see network_export.py."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroevo.analysis.exported_network import Exported
from neuroevo.core.errors import UserError
from neuroevo.core.observation_statistics import CLIP, Normalizer
from neuroevo.networks.layers import Layer

if TYPE_CHECKING:
    import keras


def to_keras(network: Exported) -> keras.Model:
    """Build the network as a Keras model of built-in layers; imports TensorFlow.

    Raises:
        UserError: The network has a graph layer, or vbn layers whose statistics are unknown.
    """
    from neuroevo.rollout.tensorflow_import import load_tensorflow

    load_tensorflow()
    import keras

    parts = network.layers
    if any(layer.kind == "graph" for layer in parts.layers):
        raise UserError(f"{network.name} has a graph layer, which Keras does not have, expected the format npz")
    x = inputs = keras.Input(parts.shape, dtype=network.observations or parts.dtype, name="observation")
    if parts.dtype == "uint8":
        x = keras.layers.Rescaling(1 / 255, name="rescaling")(x)
    if network.normalizer is not None:
        x = _normalized(x, network.normalizer)
    states: dict[str, Any] = {}  # state inputs of a recurrent network
    after: dict[str, Any] = {}  # the corresponding state outputs
    for layer in parts.layers:
        if layer.kind in ("dense", "lstm") and len(x.shape) > 2:
            x = keras.layers.Flatten(name=f"flatten_{layer.name}")(x)
        if layer.kind == "gelu":
            x = _gelu(layer.name, x)
            continue
        made = _keras_layer(layer, x.shape)
        if layer.recurrent_kernel is not None:
            x = _recurrent(layer, made, x, states, after)
            continue
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
    if states:
        inputs, x = {"observation": inputs, **states}, {"outputs": x, **after}
    return keras.Model(inputs, x, name=re.sub(r"[^A-Za-z0-9_.-]", "_", network.name))  # for TensorFlow


def _normalized(x: keras.KerasTensor, normalizer: Normalizer) -> keras.KerasTensor:
    """Add layers that compute (x - mean) / std, clipped to [-CLIP, CLIP], in float64.

    Keras's Normalization stores mean and variance in float32. The clipping is a hard tanh between two scalings.
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
    if layer.recurrent_kernel is not None:
        return keras.layers.LSTM(len(layer.recurrent_kernel), return_state=True, use_cudnn=False, name=name)
    if layer.kernel is not None:
        return keras.layers.Dense(layer.kernel.shape[1], use_bias=use_bias, name=name)
    if layer.kind == "bias":  # Keras has no layer that only adds a bias; this one first multiplies by ones
        # Axes are spelled out because Keras 3.15 reports a reversed shape for "...".
        axes = string.ascii_letters[: len(shape)]
        equation, last = f"{axes},{axes[-1]}->{axes}", axes[-1]
        return keras.layers.EinsumDense(equation, shape[1:], bias_axes=last, kernel_initializer="ones", name=name)
    if layer.kind == "vbn":
        return keras.layers.BatchNormalization(center=False, scale=False, epsilon=1e-3, name=name)
    if layer.kind == "max_pool":
        return keras.layers.MaxPooling2D(layer.window, layer.stride, layer.padding, name=name)
    if layer.kind == "avg_pool":
        return keras.layers.AveragePooling2D(layer.window, layer.stride, layer.padding, name=name)
    if layer.kind == "layer_norm":
        return keras.layers.LayerNormalization(epsilon=1e-3, center=False, scale=False, name=name)
    if layer.kind == "leaky_relu":
        return keras.layers.LeakyReLU(layer.slope, name=name)
    return keras.layers.Activation(layer.kind, name=name)


def _recurrent(
    layer: Layer, made: keras.Layer, x: keras.KerasTensor, states: dict[str, Any], after: dict[str, Any]
) -> keras.KerasTensor:
    """Add an lstm layer, whose h and c are inputs and outputs of the model."""
    import keras

    units = made.units
    names = [f"{layer.name}_{part}" for part in ("h", "c")]
    before = [keras.Input((units,), dtype="float32", name=name) for name in names]
    step = keras.layers.Reshape((1, x.shape[-1]), name=f"step_{layer.name}")(x)  # a sequence of one step
    x, *last = made(step, initial_state=before)
    made.cell.kernel.assign(layer.kernel)
    made.cell.recurrent_kernel.assign(layer.recurrent_kernel)
    made.cell.bias.assign(layer.bias)
    states.update(zip(names, before, strict=True))
    after.update(zip(names, last, strict=True))
    return x


def _gelu(name: str, x: keras.KerasTensor) -> keras.KerasTensor:
    """Add the tanh approximation of gelu, for which Keras has no layer: x * sigmoid(1.5958 x + 0.0714 x^3)."""
    import keras

    cube = keras.layers.Multiply(name=f"{name}_cube")([x, x, x])
    first = keras.layers.Rescaling(1.5957691216057308, name=f"{name}_first")(x)
    third = keras.layers.Rescaling(0.07135481627260025, name=f"{name}_third")(cube)
    inner = keras.layers.Add(name=f"{name}_inner")([first, third])
    return keras.layers.Multiply(name=name)([x, keras.layers.Activation("sigmoid", name=f"{name}_sigmoid")(inner)])
