"""Networks as layer lists, in the text form that custom_ops/population/network.h describes.

Each function takes the line that describes the input and the number of outputs and returns the list of layers.
Initial weights are noise * std / sqrt(fan_in), biases 0; std is 1.0, and 0.1 for the output layer.
"""

from __future__ import annotations

from collections.abc import Callable

DTYPES = ("float32", "int8")  # what a population can evaluate networks in
_OUTPUT_STD = 0.1


def model(observation: str, outputs: int) -> list[str]:
    """The small network of arXiv 1712.06567: D = 1,008,450 on 84x84x4 with 18 outputs."""
    return [
        observation,
        *_conv(16, kernel=8, stride=4),
        *_conv(32, kernel=4, stride=2),
        *_dense(256),
        *_output(outputs),
    ]


def large_model(observation: str, outputs: int) -> list[str]:
    """The network of Mnih et al. 2015 with SAME padding, as in arXiv 1712.06567: D = 4,052,658 on 84x84x4 with 18."""
    return [
        observation,
        *_conv(32, kernel=8, stride=4),
        *_conv(64, kernel=4, stride=2),
        *_conv(64, kernel=3, stride=1),
        *_dense(512),
        *_output(outputs),
    ]


def nature_dqn(observation: str, outputs: int) -> list[str]:
    """The network of Mnih et al. 2015 with its own VALID padding: D = 1,693,362 on 84x84x4 with 18 outputs."""
    return [
        observation,
        *_conv(32, kernel=8, stride=4, padding="valid"),
        *_conv(64, kernel=4, stride=2, padding="valid"),
        *_conv(64, kernel=3, stride=1, padding="valid"),
        *_dense(512),
        *_output(outputs),
    ]


def mlp(observation: str, outputs: int, hidden: tuple[int, ...] = (256, 256), activation: str = "tanh") -> list[str]:
    """Dense layers with tanh or relu between them."""
    layers = [observation]
    for units in hidden:
        layers += [f"dense {units} 1.0", "bias", activation]
    return [*layers, *_output(outputs)]


NETWORKS: dict[str, Callable[[str, int], list[str]]] = {
    "model": model,
    "large_model": large_model,
    "nature_dqn": nature_dqn,
    "mlp": mlp,
}


def check(name: str, dtype: str) -> list[str]:
    """What keeps a network of NETWORKS from being evaluated in a dtype of DTYPES, as problems of a configuration."""
    layers = NETWORKS[name](input_line("uint8", (84, 84, 4)), 18)
    if dtype == "int8" and "tanh" in layers:
        return [f'network.dtype = "int8": {name} has tanh between its layers, expected a network with relu']
    return []


def to_text(layers: list[str]) -> str:
    """The line that PopulationMake takes."""
    return "; ".join(layers)


def input_line(dtype: str, shape: tuple[int, ...]) -> str:
    """The layer list's first line for observations of this dtype and shape."""
    return " ".join(["input", dtype, *map(str, shape)])


def _conv(filters: int, kernel: int, stride: int, padding: str = "same") -> list[str]:
    return [f"conv {filters} {kernel} {kernel} {stride} {padding} 1.0", "bias", "relu"]


def _dense(units: int) -> list[str]:
    return [f"dense {units} 1.0", "bias", "relu"]


def _output(outputs: int) -> list[str]:
    return [f"dense {outputs} {_OUTPUT_STD}", "bias"]
