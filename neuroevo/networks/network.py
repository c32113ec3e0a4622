"""[network] of a configuration: which network plays, and in what it is evaluated."""

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

DTYPES = ("float32", "int8")  # what a population can evaluate networks in
_OF_LAYERS = "layers"  # the name of a network that [network] layers describes
_MOST_UNITS = 1 << 16  # of a hidden layer
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
        raise ValueError(f"expected 0, for none, or one in [2, {_MOST_BINS}]")
    return value


@settings
class Network:
    """Who plays."""

    name: Annotated[str, AfterValidator(_name)] = "large_model"
    """The network; `neuroevo info` lists them. All but mlp are for images. Or module:function of your own, which takes
    the shape of an observation and the number of outputs and returns all layers, as the key layers writes them."""
    layers: Annotated[tuple[str, ...], PlainValidator(_lines)] | None = None
    """In place of name, hidden and activation: a list of layers, but the output layer, which is added, such as
    ["conv 16 8x8/4 same", "relu", "dense 256", "relu"]."""
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
        if self.layers:
            for key, value in (("name", _OF_LAYERS), ("hidden", None), ("activation", None)):
                object.__setattr__(self, key, value)
        elif self.name == _OF_LAYERS:
            refuse([Problem("layers", 'expected a list of layers, such as ["dense 64", "relu"]')])
        if self.name == "mlp":  # so that a run's configuration says everything
            object.__setattr__(self, "hidden", self.hidden or MLP_HIDDEN)
            object.__setattr__(self, "activation", self.activation or MLP_ACTIVATION)

    def __str__(self) -> str:
        return self.name if self.dtype == "float32" else f"{self.name} in {self.dtype}"

    @property
    def needs_reference(self) -> bool:
        """Whether it has vbn layers, which take statistics of a reference batch."""
        return "vbn" in self._known_layers

    @property
    def _known_layers(self) -> list[str]:
        """Its layers as far as they are known without an environment: none of a user's own function's."""
        if self.layers:
            return core_layers(self.layers)
        if self.name == "mlp":
            return mlp("", 1, self.hidden or MLP_HIDDEN, self.activation or MLP_ACTIVATION)[1:]
        return NETWORKS[self.name]("", 1)[1:] if self.name in NETWORKS else []

    def lines(self, observation: str, actions: int, continuous_actions: bool) -> list[str]:
        """Return the list of layers that an environment needs.

        Args:
            observation: The line that describes the input, as input_line() makes it.
            actions: How many actions there are to choose from, or how many numbers an action has.
            continuous_actions: Whether an action is a vector of numbers.

        Raises:
            ConfigError: There are action_bins, but an action is no vector.
            UserError: The user's own function raises an exception or returns no network with such outputs.
        """
        if self.action_bins and not continuous_actions:
            reason = f"expected 0 where an action is one of {actions}"
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
            numbers: How many an observation has.
            actions: How many an action has.
        """
        return network_text(lambda line, outputs: self.lines(line, outputs, True), "float32", (numbers,), actions)


def named(network: str | Network) -> Network:
    """Return a network, looked up by its name with default settings if a name is passed.

    Raises:
        UserError: There is none of that name.
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
    """Return why a network cannot play an environment; None, for an unknown property, is not checked.

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

    kinds = [layer.split()[0] for layer in network._known_layers]
    if any(kind in _OF_IMAGES for kind in kinds):
        key, expected = ("layers", "layers for vectors") if network.layers else ("name", "mlp")
        if shape is not None and len(shape) != 3:
            screen = "screens of [height, width, channels]"
            reason = f"this network is for {screen}, and {env} shows observations of {list(shape)}"
            wrong(key, f"{reason}; expected {expected}")
        elif image_observations is False:
            wrong(key, f"this network is for screens, and {env} shows numbers; expected {expected}")
    if network.name != "mlp":
        for key in ("hidden", "activation"):
            if getattr(network, key) is not None:
                wrong(key, f"{network.name} has its own layers, expected mlp, or no such key")
    if network.dtype == "int8" and image_observations is False:
        wrong("dtype", f"{env} shows numbers with fractions, expected float32")
    elif network.dtype == "int8" and network.needs_reference:
        wrong("dtype", f"{network.name} normalizes between its layers, which needs fractions; expected float32")
    elif network.dtype == "int8" and network.activation == "tanh":
        wrong("dtype", f"{network.name} has tanh between its layers, expected a network with relu")
    elif network.dtype == "int8" and (fractions := [kind for kind in kinds if kind not in _OF_INTEGERS]):
        integers = ", ".join(_OF_INTEGERS)
        reason = f"{network.name} has {fractions[0]}, which integer networks lack"
        wrong("dtype", f"{reason}; expected {integers}, or float32")
    elif network.dtype == "int8" and continuous_actions and not network.action_bins:
        wrong("dtype", f"an action in {env} is a vector, which ends in tanh; expected float32, or action_bins")
    if network.action_bins and continuous_actions is False:
        wrong("action_bins", f"an action in {env} is one of several, not a vector of numbers; expected 0")
    if network.normalize_observations and image_observations:
        wrong("normalize_observations", f"{env} shows screens, not numbers; expected false")
    return problems


def _own(name: str, observation: str, outputs: int) -> list[str]:
    """UserError: it is not a network with that many outputs."""
    layers = [observation, *own_layers(name, tuple(map(int, observation.split()[2:])), outputs)]
    if "vbn" in layers:
        raise UserError(f"{name} has a vbn layer, expected a network without: network.layers takes one with it")
    try:
        found = output_size(to_text(layers))
    except (IndexError, ValueError):  # a layer does not fit its input: the native core says which
        return layers
    if found != outputs:
        raise UserError(f"{name} returns a network with {found} outputs, expected {outputs}, as it was asked for")
    return layers
