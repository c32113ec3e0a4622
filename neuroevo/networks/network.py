"""Settings of the policy network: the section [network] of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from neuroevo.core.errors import UserError
from neuroevo.core.problems import Problem, did_you_mean, refuse
from neuroevo.core.settings import one_of, settings, whole
from neuroevo.networks.architectures import (
    MLP_ACTIVATION,
    MLP_HIDDEN,
    NETWORKS,
    mlp,
    network_text,
    output_layers,
    to_text,
)
from neuroevo.networks.layer_lines import core_layers
from neuroevo.networks.layers import output_size
from neuroevo.networks.own_network import find_network, own_layers

DTYPES = ("float32", "int8")  # arithmetic in which a population can evaluate networks
_OF_LAYERS = "layers"  # name of a network defined by network.layers
_MOST_UNITS = 1 << 16  # maximum number of units of a hidden layer
_MOST_BINS = 1 << 10
_OF_IMAGES = ("conv", "max_pool", "avg_pool")
_OF_INTEGERS = ("conv", "dense", "bias", "relu")


def _hidden(value: object) -> tuple[int, ...]:
    units = [whole(each) for each in value] if isinstance(value, (list, tuple)) else []
    good = [each for each in units if isinstance(each, int) and not isinstance(each, bool) and 1 <= each <= _MOST_UNITS]
    if not good or len(good) < len(units):
        raise ValueError(f"expected a list of one or more numbers in [1, {_MOST_UNITS}]")
    return tuple(good)


def _name(value: str) -> str:
    if value in NETWORKS or value == _OF_LAYERS:
        return value
    if ":" not in value:
        known = ", ".join(NETWORKS)
        hint = did_you_mean(value, [*NETWORKS, _OF_LAYERS])
        raise ValueError(f"expected one of {known}, or module:function of your own{hint}")
    try:
        find_network(value)
    except UserError as error:
        raise ValueError(str(error)) from error
    return value


def _lines(value: object) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError('expected a list of layers, such as ["dense 64", "relu"]')
    core_layers(value)
    return tuple(value)


def _bins(value: int) -> int:
    if value == 1 or not 0 <= value <= _MOST_BINS:
        raise ValueError(f"expected 0 (continuous actions) or a number in [2, {_MOST_BINS}]")
    return value


@settings
class Network:
    """Policy network settings."""

    name: Annotated[str, AfterValidator(_name)] = "large_model"
    """Name of the network: a name listed by `neuroevo info`, of which all except mlp and linear require images, or
    module:function of a user function of the observation shape and the number of outputs that returns all layers, in
    the syntax of `layers`."""
    layers: Annotated[tuple[str, ...], PlainValidator(_lines)] | None = None
    """List of layers without the output layer, which is appended, such as
    ["conv 16 8x8/4 same", "relu", "dense 256", "relu"]. Replaces name, hidden and activation."""
    dtype: Annotated[str, one_of(DTYPES)] = "float32"
    """Arithmetic of the network: float32, or int8 for 8-bit integers, which are faster and bit-identical on every
    machine. Mutations apply to float32 weights in both cases."""
    hidden: Annotated[tuple[int, ...], PlainValidator(_hidden)] | None = None
    """Units of each hidden layer of mlp, by default [256, 256]; not supported by other networks."""
    activation: Literal["tanh", "relu"] | None = None
    """Activation after each hidden layer of mlp, by default "tanh"; not supported by other networks."""
    action_bins: Annotated[int, BeforeValidator(whole), AfterValidator(_bins)] = 0
    """Bins per action dimension, with one output per bin and an argmax over the bins, as on some tasks of arXiv
    1703.03864; 0 = continuous actions, with one tanh output per dimension."""
    normalize_observations: bool = False
    """Normalize non-image observations by the running mean and standard deviation over all previous generations, and
    clip them to [-5, 5]."""

    def __post_init__(self) -> None:
        if self.layers:
            for key, value in (("name", _OF_LAYERS), ("hidden", None), ("activation", None)):
                object.__setattr__(self, key, value)
        elif self.name == _OF_LAYERS:
            refuse([Problem("layers", 'expected a list of layers, such as ["dense 64", "relu"]')])
        if self.name == "mlp":  # so that a run's configuration is complete
            object.__setattr__(self, "hidden", self.hidden or MLP_HIDDEN)
            object.__setattr__(self, "activation", self.activation or MLP_ACTIVATION)

    def __str__(self) -> str:
        return self.name if self.dtype == "float32" else f"{self.name} in {self.dtype}"

    @property
    def needs_reference(self) -> bool:
        """Whether the network has vbn layers, which require statistics of a reference batch."""
        return "vbn" in self._known_layers

    @property
    def _known_layers(self) -> list[str]:
        """The layers that are known without an environment; empty for a user function."""
        if self.layers:
            return core_layers(self.layers)
        if self.name == "mlp":
            return mlp("", 1, self.hidden or MLP_HIDDEN, self.activation or MLP_ACTIVATION)[1:]
        return NETWORKS[self.name]("", 1)[1:] if self.name in NETWORKS else []

    def lines(self, observation: str, actions: int, continuous_actions: bool) -> list[str]:
        """Return the list of layers for an environment.

        Args:
            observation: The line that describes the input, as input_line() returns it.
            actions: Number of discrete actions, or length of an action vector.
            continuous_actions: Whether an action is a vector of numbers.

        Raises:
            ConfigError: action_bins is set, but actions are discrete.
            UserError: The user function raises an exception or returns a network with a wrong number of outputs.
        """
        if self.action_bins and not continuous_actions:
            reason = f"expected 0, since the environment has {actions} discrete actions"
            refuse([Problem("network.action_bins", reason, self.action_bins)])
        outputs = actions * (self.action_bins or 1)
        if self.name == "mlp":
            layers = mlp(observation, outputs, self.hidden or MLP_HIDDEN, self.activation or MLP_ACTIVATION)
        elif self.layers:
            layers = [observation, *core_layers(self.layers), *output_layers(outputs)]
        elif self.name in NETWORKS:
            layers = NETWORKS[self.name](observation, outputs)
        else:
            layers = _own(self.name, observation, outputs)
        return [*layers, "tanh"] if continuous_actions and not self.action_bins else layers

    def vector_text(self, numbers: int, actions: int) -> str:
        """Return the text form for observations and actions that are vectors.

        Args:
            numbers: Length of an observation.
            actions: Length of an action.
        """
        return network_text(lambda line, outputs: self.lines(line, outputs, True), "float32", (numbers,), actions)


def named(network: str | Network) -> Network:
    """Return the given network settings, or default settings for a network's name.

    Raises:
        UserError: No network has that name.
    """
    if isinstance(network, Network):
        return network
    if network not in NETWORKS and ":" not in network:
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
    """Return the problems that prevent a network from playing an environment. Properties that are None are not checked.

    Args:
        network: The network.
        env: Name of the environment in messages.
        image_observations: Whether observations are uint8 images, not vectors of numbers.
        continuous_actions: Whether an action is a vector of numbers.
        shape: The shape of an observation.

    Returns:
        Problems of the keys of [network].
    """
    problems: list[Problem] = []

    def wrong(key: str, reason: str) -> None:
        problems.append(Problem(f"network.{key}", reason, getattr(network, key)))

    kinds = [layer.split()[0] for layer in network._known_layers]
    if any(kind in _OF_IMAGES for kind in kinds):
        key, expected = ("layers", "layers for vectors") if network.layers else ("name", "mlp")
        if shape is not None and len(shape) != 3:
            screen = "images of shape [height, width, channels]"
            reason = f"this network requires {screen}, but {env} has observations of shape {list(shape)}"
            wrong(key, f"{reason}; expected {expected}")
        elif image_observations is False:
            wrong(key, f"this network requires images, but {env} has vector observations; expected {expected}")
    if network.name != "mlp":
        for key in ("hidden", "activation"):
            if getattr(network, key) is not None:
                wrong(key, f"{network.name} does not support this key: expected mlp, or the key left out")
    if network.dtype == "int8" and image_observations is False:
        wrong("dtype", f"{env} has vector observations, expected float32")
    elif network.dtype == "int8" and network.needs_reference:
        wrong("dtype", f"{network.name} has vbn layers, which int8 does not support; expected float32")
    elif network.dtype == "int8" and network.activation == "tanh":
        wrong("dtype", f"{network.name} has tanh between its layers, expected a network with relu")
    elif network.dtype == "int8" and (fractions := [kind for kind in kinds if kind not in _OF_INTEGERS]):
        integers = ", ".join(_OF_INTEGERS)
        reason = f"{network.name} has {fractions[0]}, which integer networks lack"
        wrong("dtype", f"{reason}; expected {integers}, or float32")
    elif network.dtype == "int8" and continuous_actions and not network.action_bins:
        wrong("dtype", f"{env} has continuous actions, whose network ends in tanh; expected float32, or action_bins")
    if network.action_bins and continuous_actions is False:
        wrong("action_bins", f"{env} has discrete actions, not continuous actions; expected 0")
    if network.normalize_observations and image_observations:
        wrong("normalize_observations", f"{env} has image observations, expected false")
    return problems


def _own(name: str, observation: str, outputs: int) -> list[str]:
    """Return the layers of a user function. UserError: the network does not have that many outputs."""
    layers = [observation, *own_layers(name, tuple(map(int, observation.split()[2:])), outputs)]
    if "vbn" in layers:
        raise UserError(f"{name} has a vbn layer, which only network.layers supports")
    try:
        found = output_size(to_text(layers))
    except (IndexError, ValueError):  # a layer does not fit its input: the native core reports it
        return layers
    if found != outputs:
        raise UserError(f"{name} returns a network with {found} outputs, expected {outputs}, its argument")
    return layers
