"""Custom networks: functions selected by `network.name = "experiments.examples.networks:NAME"`.

Each function takes the shape of an observation and the number of outputs, and returns the layers in the format of the
key network.layers, including the output layer. For continuous actions a tanh is appended.
"""

from __future__ import annotations


def small(shape: tuple[int, ...], outputs: int) -> list[str]:
    """Return a small network for any observation; images first pass a convolution and a pooling layer."""
    eyes = ["conv 16 8x8/4 same", "relu", "max_pool 2x2"] if len(shape) == 3 else []
    return [*eyes, "dense 64", "layer_norm", "silu", f"dense {outputs} std=0.1"]


def large_model_lstm(shape: tuple[int, ...], outputs: int) -> list[str]:
    """Return LargeModel with an LSTM of 256 units before its outputs."""
    eyes = ["conv 32 8x8/4 same", "relu", "conv 64 4x4/2 same", "relu", "conv 64 3x3 same", "relu"]
    return [*eyes, "dense 512", "relu", "lstm 256", f"dense {outputs} std=0.1"]
