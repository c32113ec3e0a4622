"""Networks as layer lists, in the text form that custom_ops/networks/network.h describes; [network] chooses one.

Each function takes the line that describes the input and the number of outputs and returns the list of layers.
Initial weights are noise * std / sqrt(fan_in), biases 0; std is 1.0, and 0.1 for the output layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from neuroevo.core.errors import UserError
from neuroevo.core.problems import did_you_mean, inline
from neuroevo.core.settings import one_of, settings, whole

DTYPES = ("float32", "int8")  # what a population can evaluate networks in
_OUTPUT_STD = 0.1
_MOST_UNITS = 1 << 16  # of a hidden layer
_MOST_BINS = 1 << 10


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


def virtual_bn(observation: str, outputs: int) -> list[str]:
    """model with virtual batch normalization, as the 2018 code ran ES: D = 1,008,450 on 84x84x4 with 18 outputs.

    Each layer but the output is normalized before its bias is added; all layers, the output too, have std 1.0.
    """
    normalized = [
        layer
        for weights in ("conv 16 8 8 4 same 1.0", "conv 32 4 4 2 same 1.0", "dense 256 1.0")
        for layer in (weights, "vbn", "bias", "relu")
    ]
    return [observation, *normalized, f"dense {outputs} 1.0", "bias"]


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
    "virtual_bn": virtual_bn,
    "mlp": mlp,
}


def _hidden(value: object) -> tuple[int, ...]:
    units = [whole(each) for each in value] if isinstance(value, (list, tuple)) else []
    if not units or not all(type(each) is int and 1 <= each <= _MOST_UNITS for each in units):
        raise ValueError(f"expected a list of one or more numbers in [1, {_MOST_UNITS}]")
    return tuple(units)


def _bins(value: int) -> int:
    if value == 1 or not 0 <= value <= _MOST_BINS:
        raise ValueError(f"expected 0, for none, or one in [2, {_MOST_BINS}]")
    return value


@settings
class Network:
    """Who plays."""

    name: Annotated[str, one_of(NETWORKS)] = "large_model"
    """The network; `neuroevo info` lists them. All but mlp are for screens."""
    dtype: Annotated[str, one_of(DTYPES)] = "float32"
    """What the network is evaluated in: float32, or int8 for 8-bit integers, which are faster and the
    same bits on every machine. Mutations are of float32 weights either way."""
    hidden: Annotated[tuple[int, ...], PlainValidator(_hidden)] | None = None
    """Units of each hidden layer of mlp, by default [256, 256]; other networks have their own."""
    activation: Literal["tanh", "relu"] | None = None
    """What follows each hidden layer of mlp, by default "tanh"; other networks have relu."""
    action_bins: Annotated[int, BeforeValidator(whole), AfterValidator(_bins)] = 0
    """Where an action is a vector of numbers: how many evenly spaced values each may have, with an output for each and
    the greatest taken, as on some tasks of arXiv 1703.03864; 0 for any value, by one output with tanh."""
    normalize_observations: bool = False
    """Whether observations that are no screens lose the mean and are divided by the standard deviation of what earlier
    generations' populations saw, and are clipped to [-5, 5]."""

    def __post_init__(self) -> None:
        if self.name == "mlp":  # so that a run's configuration says everything
            object.__setattr__(self, "hidden", self.hidden or (256, 256))
            object.__setattr__(self, "activation", self.activation or "tanh")

    def __str__(self) -> str:
        return self.name if self.dtype == "float32" else f"{self.name} in {self.dtype}"

    @property
    def needs_reference(self) -> bool:
        """Whether it has vbn layers, which take statistics of a reference batch (reference.py)."""
        return "vbn" in NETWORKS[self.name](input_line("uint8", (84, 84, 4)), 1)

    def layers(self, observation: str, actions: int, vector: bool) -> list[str]:
        """The layer list for observations as input_line() says and one of `actions` actions, or a vector of so many.

        UserError: action_bins without a vector.
        """
        if self.action_bins and not vector:
            raise UserError(f"network.action_bins = {self.action_bins}: expected 0 where an action is one of {actions}")
        outputs = actions * (self.action_bins or 1)
        if self.name == "mlp":
            layers = mlp(observation, outputs, self.hidden, self.activation)
        else:
            layers = NETWORKS[self.name](observation, outputs)
        return [*layers, "tanh"] if vector and not self.action_bins else layers


def named(network: str | Network) -> Network:
    """A network, or the one of that name with the defaults of its settings. UserError: there is none."""
    if isinstance(network, Network):
        return network
    if network not in NETWORKS:
        known = ", ".join(NETWORKS)
        raise UserError(f"network '{network}' is unknown{did_you_mean(network, NETWORKS)} (known: {known})")
    return Network(network)


def check(
    network: Network,
    env: str,
    screens: bool | None = None,
    vector: bool | None = None,
    shape: tuple[int, ...] | None = None,
) -> list[str]:
    """What keeps a network from playing an environment, as problems of a configuration.

    env: its name. screens: whether observations are uint8 images. vector: whether an action is a vector of numbers.
    shape: of an observation. None is what is not known, and then not checked.
    """
    problems = []

    def wrong(key: str, reason: str) -> None:
        problems.append(f"network.{key} = {inline(getattr(network, key))}: {reason}")

    if network.name != "mlp":
        if shape is not None and len(shape) != 3:
            screen = "screens of [height, width, channels]"
            wrong("name", f"this network is for {screen}, and {env} shows observations of {list(shape)}; expected mlp")
        elif screens is False:
            wrong("name", f"this network is for screens, and {env} shows numbers; expected mlp")
        for key in ("hidden", "activation"):
            if getattr(network, key) is not None:
                wrong(key, f"{network.name} has its own layers, expected mlp, or no such key")
    if network.dtype == "int8" and screens is False:
        wrong("dtype", f"{env} shows numbers with fractions, expected float32")
    elif network.dtype == "int8" and network.needs_reference:
        wrong("dtype", f"{network.name} normalizes between its layers, which needs fractions; expected float32")
    elif network.dtype == "int8" and network.activation == "tanh":
        wrong("dtype", f"{network.name} has tanh between its layers, expected a network with relu")
    elif network.dtype == "int8" and vector and not network.action_bins:
        wrong("dtype", f"an action in {env} is a vector, which ends in tanh; expected float32, or action_bins")
    if network.action_bins and vector is False:
        wrong("action_bins", f"an action in {env} is one of several, not a vector of numbers; expected 0")
    if network.normalize_observations and screens:
        wrong("normalize_observations", f"{env} shows screens, not numbers; expected false")
    return problems


def to_text(layers: list[str]) -> str:
    """The line that PopulationMake takes."""
    return "; ".join(layers)


def network_text(layers: Callable[[str, int], list[str]], dtype: str, shape: tuple[int, ...], num_actions: int) -> str:
    """The text form of a network for an environment.

    Args:
        layers: What makes the layer list of the input's line and the number of actions.
        dtype: Of the environment's observations.
        shape: Of one of them.
        num_actions: Actions, or numbers of an action that is a vector.
    """
    return to_text(layers(input_line(dtype, shape), num_actions))


def input_line(dtype: str, shape: tuple[int, ...]) -> str:
    """The layer list's first line for an environment's observations of this dtype and shape.

    Networks see those that are not uint8 as float32.
    """
    return " ".join(["input", "uint8" if dtype == "uint8" else "float32", *map(str, shape)])


def _conv(filters: int, kernel: int, stride: int, padding: str = "same") -> list[str]:
    return [f"conv {filters} {kernel} {kernel} {stride} {padding} 1.0", "bias", "relu"]


def _dense(units: int) -> list[str]:
    return [f"dense {units} 1.0", "bias", "relu"]


def _output(outputs: int) -> list[str]:
    return [f"dense {outputs} {_OUTPUT_STD}", "bias"]
