"""JAX implementation of the package's networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp

from neuroevo.core.errors import UserError
from neuroevo.networks.layers import Layer, unpack_weights

Forward = Callable[[jax.Array, jax.Array], jax.Array]


def forward(text: str) -> Forward:
    """Return the forward function of one network for one observation; use jax.vmap for batches.

    Args:
        text: The network as text, for vectors of float32 observations, without vbn layers.

    Returns:
        A function of theta, float32 [D], and an observation of the network's shape, that returns outputs, float32 [W].
    """

    def outputs(theta: jax.Array, observation: jax.Array) -> jax.Array:
        x = observation.astype(jnp.float32)
        for layer in unpack_weights(text, theta).layers:  # type: ignore[arg-type]
            x = _apply(layer, x)
        return x.reshape(-1)

    return outputs


@lru_cache(maxsize=8)  # equal arguments give the identical function, so that JAX reuses its compiled programs
def policy(text: str, bins: int) -> Forward:
    """Return the function from theta and an observation to an action.

    Args:
        text: The network as text, as for forward().
        bins: Network.action_bins: bins per action dimension, evenly spaced from -1 to 1 (argmax over the outputs of the
            bins); 0: the outputs are the action.

    Returns:
        A function of theta and an observation that returns an action, float32 [A], in [-1, 1].
    """
    outputs = forward(text)
    if not bins:
        return outputs

    def action(theta: jax.Array, observation: jax.Array) -> jax.Array:
        best = jnp.argmax(outputs(theta, observation).reshape(-1, bins), axis=-1)
        return -1 + best.astype(jnp.float32) * jnp.float32(2 / (bins - 1))

    return action


def _apply(layer: Layer, x: jax.Array) -> jax.Array:
    if layer.kind == "dense" and layer.kernel is not None:
        # Each lane has its own weights. As a matrix product this takes XLA up to four times as long.
        x = jnp.sum(x.reshape(-1, 1) * layer.kernel, axis=0)
    elif layer.kind in _ACTIVATIONS:
        x = _ACTIVATIONS[layer.kind](x)
    elif layer.kind == "leaky_relu":
        x = jax.nn.leaky_relu(x, layer.slope)
    elif layer.kind == "layer_norm":
        x = jax.nn.standardize(x, epsilon=1e-3)
    elif layer.kind != "bias":
        raise UserError(f"layer {layer.name} is not supported with a simulator on the accelerator")
    return x if layer.bias is None else x + layer.bias


_ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "relu": lambda x: jnp.maximum(x, 0),
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=True),
}
