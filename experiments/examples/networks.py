"""Networks of one's own: functions that `network.name = "experiments.examples.networks:NAME"` names.

Each takes the shape of an observation and the number of outputs, and returns the layers as the key network.layers
writes them, the output layer too. Where an action is a vector, a tanh follows.
"""

from __future__ import annotations


def small(shape: tuple[int, ...], outputs: int) -> list[str]:
    """A small network for whatever is observed: images go through a convolution and a pool first."""
    eyes = ["conv 16 8x8/4 same", "relu", "max_pool 2x2"] if len(shape) == 3 else []
    return [*eyes, "dense 64", "layer_norm", "silu", f"dense {outputs} std=0.1"]


def large_model_lstm(shape: tuple[int, ...], outputs: int) -> list[str]:
    """LargeModel with a recurrent cell of 256 units before its outputs."""
    eyes = ["conv 32 8x8/4 same", "relu", "conv 64 4x4/2 same", "relu", "conv 64 3x3 same", "relu"]
    return [*eyes, "dense 512", "relu", "lstm 256", f"dense {outputs} std=0.1"]
