"""Networks of the package in JAX: their initial weights and their outputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from neuroevo.networks.layers import Layer, take_apart

Forward = Callable[[jax.Array, jax.Array], jax.Array]


def initial_scales(text: str, dimension: int) -> np.ndarray:
    """By how much the noise of each initial weight is multiplied.

    Args:
        text: The network as text.
        dimension: D.

    Returns:
        float32 [D].
    """
    scales = np.zeros(dimension, np.float32)
    for layer in take_apart(text, scales).layers:
        if layer.kernel is not None:
            layer.kernel[...] = layer.deviation  # a view
    return scales


def forward(text: str, statistics: np.ndarray | None = None) -> Forward:
    """Makes the function of one network and one observation; jax.vmap makes those of many.

    Args:
        text: The network as text.
        statistics: Statistics of its vbn layers, float32 [S], which hold for one theta only; None without such layers.

    Returns:
        A function of theta, float32 [D], and an observation of the network's shape, that gives outputs, float32 [W].
    """

    def outputs(theta: jax.Array, observation: jax.Array) -> jax.Array:
        network = take_apart(text, theta, statistics)  # type: ignore[arg-type]
        x = observation.astype(jnp.float32)
        if network.dtype == "uint8":
            x = x * jnp.float32(1 / 255)
        for layer in network.layers:
            x = _apply(layer, x)
        return x.reshape(-1)

    return outputs


@lru_cache(maxsize=8)  # the same function for the same arguments, so that JAX finds what it has compiled
def policy(text: str, bins: int) -> Forward:
    """Makes the function of the action of one network and one observation.

    Args:
        text: The network as text, without vbn layers.
        bins: Network.action_bins: how many evenly spaced values from -1 to 1 each number of an action may have, with an
            output for each, of which the greatest is taken; 0: an output is a number of an action.

    Returns:
        A function of theta and an observation that gives an action, float32 [A], in [-1, 1].
    """
    outputs = forward(text)
    if not bins:
        return outputs

    def action(theta: jax.Array, observation: jax.Array) -> jax.Array:
        best = jnp.argmax(outputs(theta, observation).reshape(-1, bins), axis=-1)
        return -1 + best.astype(jnp.float32) * jnp.float32(2 / (bins - 1))

    return action


def _apply(layer: Layer, x: jax.Array) -> jax.Array:
    if layer.kind == "conv":
        x = _convolution(layer, x)
    elif layer.kind == "dense" and layer.kernel is not None:
        x = jnp.dot(x.reshape(-1), layer.kernel, precision=lax.Precision.HIGHEST)
    elif layer.kind == "relu":
        x = jnp.maximum(x, 0)
    elif layer.kind == "tanh":
        x = jnp.tanh(x)
    elif layer.kind == "vbn":
        if layer.mean is None:
            raise ValueError(f"the statistics of {layer.name} are unknown, expected those of a reference batch")
        x = (x - layer.mean) * layer.factor
    elif layer.kind != "bias":
        raise ValueError(f"layer {layer.name} is of no kind that is known here")
    return x if layer.bias is None else x + layer.bias


def _convolution(layer: Layer, x: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(
        x[None],
        jnp.asarray(layer.kernel),
        window_strides=(layer.stride, layer.stride),
        padding=layer.padding.upper(),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=lax.Precision.HIGHEST,
    )[0]
