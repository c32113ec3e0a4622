"""Networks as layer lists, in the text form that custom_ops/networks/network.h describes; [network] chooses one.

Each function takes the line that describes the input and the number of outputs and returns the list of layers.
Initial weights are noise * std / sqrt(fan_in), biases 0; std is 1.0, and 0.1 for the output layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, did_you_mean, refuse
from neuroevo.core.settings import one_of, settings, whole

DTYPES = ("float32", "int8")  # what a population can evaluate networks in
_OUTPUT_STD = 0.1
_MLP_HIDDEN, _MLP_ACTIVATION = (256, 256), "tanh"
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
    """Model with virtual batch normalization, as the 2018 code ran ES: D = 1,008,450 on 84x84x4 with 18 outputs.

    Each layer but the output is normalized before its bias is added; all layers, the output too, have std 1.0.
    """
    normalized = [
        layer
        for weights in ("conv 16 8 8 4 same 1.0", "conv 32 4 4 2 same 1.0", "dense 256 1.0")
        for layer in (weights, "vbn", "bias", "relu")
    ]
    return [observation, *normalized, f"dense {outputs} 1.0", "bias"]


def mlp(
    observation: str, outputs: int, hidden: tuple[int, ...] = _MLP_HIDDEN, activation: str = _MLP_ACTIVATION
) -> list[str]:
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
    good = [each for each in units if isinstance(each, int) and not isinstance(each, bool) and 1 <= each <= _MOST_UNITS]
    if not good or len(good) < len(units):
        raise ValueError(f"expected a list of one or more numbers in [1, {_MOST_UNITS}]")
    return tuple(good)


def _bins(value: int) -> int:
    if value == 1 or not 0 <= value <= _MOST_BINS:
        raise ValueError(f"expected 0, for none, or one in [2, {_MOST_BINS}]")
    return value


@settings
class Network:
    """Who plays."""

    name: Annotated[str, one_of(NETWORKS)] = "large_model"
    """The network; `neuroevo info` lists them. All but mlp are for images."""
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
            object.__setattr__(self, "hidden", self.hidden or _MLP_HIDDEN)
            object.__setattr__(self, "activation", self.activation or _MLP_ACTIVATION)

    def __str__(self) -> str:
        return self.name if self.dtype == "float32" else f"{self.name} in {self.dtype}"

    @property
    def needs_reference(self) -> bool:
        """Whether it has vbn layers, which take statistics of a reference batch."""
        return "vbn" in NETWORKS[self.name](input_line("uint8", (84, 84, 4)), 1)

    def layers(self, observation: str, actions: int, continuous_actions: bool) -> list[str]:
        """The list of layers that an environment needs.

        Args:
            observation: The line that describes the input, as input_line() makes it.
            actions: How many actions there are to choose from, or how many numbers an action has.
            continuous_actions: Whether an action is a vector of numbers.

        Raises:
            ConfigError: There are action_bins, but an action is no vector.
        """
        if self.action_bins and not continuous_actions:
            reason = f"expected 0 where an action is one of {actions}"
            refuse([Problem("network.action_bins", reason, self.action_bins)])
        outputs = actions * (self.action_bins or 1)
        if self.name == "mlp":
            layers = mlp(observation, outputs, self.hidden or _MLP_HIDDEN, self.activation or _MLP_ACTIVATION)
        else:
            layers = NETWORKS[self.name](observation, outputs)
        return [*layers, "tanh"] if continuous_actions and not self.action_bins else layers

    def vector_text(self, numbers: int, actions: int) -> str:
        """The text form for observations and actions that are vectors.

        Args:
            numbers: How many an observation has.
            actions: How many an action has.
        """
        return network_text(lambda line, outputs: self.layers(line, outputs, True), "float32", (numbers,), actions)


def named(network: str | Network) -> Network:
    """A network, or the one of that name with the defaults of its settings.

    Raises:
        UserError: There is none of that name.
    """
    if isinstance(network, Network):
        return network
    if network not in NETWORKS:
        known = ", ".join(NETWORKS)
        raise UserError(f"network '{network}' is unknown{did_you_mean(network, NETWORKS)} (known: {known})")
    return Network(network)


def check(
    network: Network,
    env: str,
    image_observations: bool | None = None,
    continuous_actions: bool | None = None,
    shape: tuple[int, ...] | None = None,
) -> list[Problem]:
    """What keeps a network from playing an environment. What is not known of it, None, is not checked.

    Args:
        network: The network.
        env: What to call the environment.
        image_observations: Whether observations are uint8 images, not vectors of numbers.
        continuous_actions: Whether an action is a vector of numbers.
        shape: The shape of an observation.

    Returns:
        Problems of the keys of [network].
    """
    problems: list[Problem] = []

    def wrong(key: str, reason: str) -> None:
        problems.append(Problem(f"network.{key}", reason, getattr(network, key)))

    if network.name != "mlp":
        if shape is not None and len(shape) != 3:
            screen = "screens of [height, width, channels]"
            wrong("name", f"this network is for {screen}, and {env} shows observations of {list(shape)}; expected mlp")
        elif image_observations is False:
            wrong("name", f"this network is for screens, and {env} shows numbers; expected mlp")
        for key in ("hidden", "activation"):
            if getattr(network, key) is not None:
                wrong(key, f"{network.name} has its own layers, expected mlp, or no such key")
    if network.dtype == "int8" and image_observations is False:
        wrong("dtype", f"{env} shows numbers with fractions, expected float32")
    elif network.dtype == "int8" and network.needs_reference:
        wrong("dtype", f"{network.name} normalizes between its layers, which needs fractions; expected float32")
    elif network.dtype == "int8" and network.activation == "tanh":
        wrong("dtype", f"{network.name} has tanh between its layers, expected a network with relu")
    elif network.dtype == "int8" and continuous_actions and not network.action_bins:
        wrong("dtype", f"an action in {env} is a vector, which ends in tanh; expected float32, or action_bins")
    if network.action_bins and continuous_actions is False:
        wrong("action_bins", f"an action in {env} is one of several, not a vector of numbers; expected 0")
    if network.normalize_observations and image_observations:
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
