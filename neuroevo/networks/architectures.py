"""Named architectures as lists of layers, in the text form of custom_ops/networks/network.h.

Each function takes the line that describes the input and the number of outputs, and returns the list of layers. Initial
weights are noise * std / sqrt(fan_in), initial biases 0; std is 1.0, and 0.1 for the output layer.
"""

from __future__ import annotations

from collections.abc import Callable

_OUTPUT_STD = 0.1
MLP_HIDDEN, MLP_ACTIVATION = (256, 256), "tanh"  # defaults


def model(observation: str, outputs: int) -> list[str]:
    """Return the small network of arXiv 1712.06567: D = 1,008,450 on 84x84x4 with 18 outputs."""
    return [
        observation,
        *_conv(16, kernel=8, stride=4),
        *_conv(32, kernel=4, stride=2),
        *_dense(256),
        *output_layers(outputs),
    ]


def large_model(observation: str, outputs: int) -> list[str]:
    """Return the network of Mnih et al. 2015, SAME padding (arXiv 1712.06567): D = 4,052,658 on 84x84x4 with 18."""
    return [
        observation,
        *_conv(32, kernel=8, stride=4),
        *_conv(64, kernel=4, stride=2),
        *_conv(64, kernel=3, stride=1),
        *_dense(512),
        *output_layers(outputs),
    ]


def nature_dqn(observation: str, outputs: int) -> list[str]:
    """Return the network of Mnih et al. 2015 with VALID padding: D = 1,693,362 on 84x84x4 with 18 outputs."""
    return [
        observation,
        *_conv(32, kernel=8, stride=4, padding="valid"),
        *_conv(64, kernel=4, stride=2, padding="valid"),
        *_conv(64, kernel=3, stride=1, padding="valid"),
        *_dense(512),
        *output_layers(outputs),
    ]


def virtual_bn(observation: str, outputs: int) -> list[str]:
    """Return `model` with virtual batch normalization, as in the 2018 code's ES: D = 1,008,450 as for `model`.

    Each layer except the output is normalized before its bias is added; all layers, including the output, have std 1.0.
    """
    normalized = [
        layer
        for weights in ("conv 16 8 8 4 same 1.0", "conv 32 4 4 2 same 1.0", "dense 256 1.0")
        for layer in (weights, "vbn", "bias", "relu")
    ]
    return [observation, *normalized, f"dense {outputs} 1.0", "bias"]


def mlp(
    observation: str, outputs: int, hidden: tuple[int, ...] = MLP_HIDDEN, activation: str = MLP_ACTIVATION
) -> list[str]:
    """Return dense layers with tanh or relu between them."""
    layers = [observation]
    for units in hidden:
        layers += [f"dense {units} 1.0", "bias", activation]
    return [*layers, *output_layers(outputs)]


def linear(observation: str, outputs: int) -> list[str]:
    """Return one dense layer without bias and with initial weights 0, as in ARS (Mania et al. 2018)."""
    return [observation, f"dense {outputs} 0.0"]


NETWORKS: dict[str, Callable[[str, int], list[str]]] = {
    "model": model,
    "large_model": large_model,
    "nature_dqn": nature_dqn,
    "virtual_bn": virtual_bn,
    "mlp": mlp,
    "linear": linear,
}


def to_text(layers: list[str]) -> str:
    """Return the network as one line for PopulationMake."""
    return "; ".join(layers)


def network_text(layers: Callable[[str, int], list[str]], dtype: str, shape: tuple[int, ...], num_actions: int) -> str:
    """Return the text form of a network for an environment.

    Args:
        layers: Function of the input's line and the number of outputs that returns the layers.
        dtype: Dtype of the environment's observations.
        shape: Shape of one observation.
        num_actions: Number of discrete actions, or length of an action vector.
    """
    return to_text(layers(input_line(dtype, shape), num_actions))


def input_line(dtype: str, shape: tuple[int, ...]) -> str:
    """Return the first line of a layer list, for observations of a dtype and shape.

    Observations that are not uint8 are converted to float32.
    """
    return " ".join(["input", "uint8" if dtype == "uint8" else "float32", *map(str, shape)])


def _conv(filters: int, kernel: int, stride: int, padding: str = "same") -> list[str]:
    return [f"conv {filters} {kernel} {kernel} {stride} {padding} 1.0", "bias", "relu"]


def _dense(units: int) -> list[str]:
    return [f"dense {units} 1.0", "bias", "relu"]


def output_layers(outputs: int) -> list[str]:
    """Return the last dense layer with its bias, without the tanh of continuous actions."""
    return [f"dense {outputs} {_OUTPUT_STD}", "bias"]
