"""Adam, SGD with momentum and ClipUp on flat float32 vectors, as pure functions of their states.

Optimizers are settings of a configuration, such as {type = "adam", learning_rate = 0.01}; the default type is Adam. An
optimizer minimizes a loss. Evolution strategies maximize fitness, so they pass weight_decay * theta minus their
estimate as the gradient. All arithmetic on vectors is float32 and elementwise, so that results are bit-identical on
every machine.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag

from neuroevo.core.arrays import Checked, check_array, check_counts, norm
from neuroevo.core.genome import Center, Genome
from neuroevo.core.settings import Positive32, nested_settings

Decay = Annotated[float, Field(ge=0, lt=1)]  # decay rate of a running mean: the share that is kept at each step


@dataclass(frozen=True, eq=False)
class OptimizerState(Checked):
    """The state of an optimizer between two steps. Its arrays are never modified, so states may share them.

    Attributes:
        steps: Steps taken so far.
        moments: Arrays, float32 [D] each. Adam: running means of the gradient and of its square. SGD and ClipUp: the
            velocity.
    """

    steps: int
    moments: tuple[np.ndarray, ...]

    def check_state(self) -> None:
        """Check shapes and ranges. ValueError: the moments are not float32 [D] with a common D."""
        check_counts(steps=self.steps)
        if not self.moments:
            raise ValueError("the optimizer has no moments, expected one or more")
        for moment in self.moments:
            check_array("a moment", moment, self.moments[0].shape if self.moments[0].ndim == 1 else [None], np.float32)


class _Optimizer(ABC):
    """Base class of optimizers, whose fields are their settings."""

    moments: ClassVar[int]  # number of moments in a state

    def init(self, dimension: int) -> OptimizerState:
        """Make the state before the first step, with zeros [dimension] as moments."""
        return OptimizerState(0, tuple(np.zeros(dimension, np.float32) for _ in range(self.moments)))

    def check_state(self, state: OptimizerState, center: Genome) -> None:
        """Check a state against these settings and the center.

        Raises:
            ValueError: The number of moments is wrong, or they have another D than the center's weights.
        """
        if len(state.moments) != self.moments:
            raise ValueError(f"an optimizer has {len(state.moments)} moments, expected {self.moments}")
        if isinstance(center.root, Center) and state.moments[0].shape != center.root.vector.shape:
            shape = list(center.root.vector.shape)
            raise ValueError(f"moments have shape {list(state.moments[0].shape)}, expected the center's, {shape}")

    @abstractmethod
    def step(self, state: OptimizerState, gradient: np.ndarray) -> tuple[np.ndarray, OptimizerState]:
        """Compute one step.

        Args:
            state: The state before the step.
            gradient: Gradient of the loss, [D].

        Returns:
            The change to add to theta, float32 [D], and the next state.

        Raises:
            ValueError: The gradient is not [D], or not finite in 32 bits.
        """


@nested_settings
class Adam(_Optimizer):
    """Adam (Kingma and Ba 2014, https://arxiv.org/abs/1412.6980), in the form at the end of the paper's section 2.

    The learning rate includes the bias correction of both running means, and epsilon is added to the uncorrected square
    root, as in OpenAI's evolution strategies and Uber's 2018 code. Algorithm 1 of the paper and most libraries also
    correct the root, which makes a difference only if gradients are as small as epsilon.
    """

    learning_rate: Positive32 = 0.01
    """Approximate size of a step in each weight."""
    beta1: Decay = 0.9
    """Decay rate of the running mean of the gradient."""
    beta2: Decay = 0.999
    """Decay rate of the running mean of the squared gradient."""
    epsilon: Positive32 = 1e-8
    """Added to the square root of the mean squared gradient."""
    type: Literal["adam"] = "adam"
    """Name of the optimizer."""

    moments = 2

    def check_state(self, state: OptimizerState, center: Genome) -> None:
        """Check a state; the running mean of the squared gradient must not be negative."""
        super().check_state(state, center)
        if (state.moments[1] < 0).any():
            raise ValueError("the mean of the squared gradient has numbers below 0")

    def step(self, state: OptimizerState, gradient: np.ndarray) -> tuple[np.ndarray, OptimizerState]:
        """Compute one step."""
        mean, square = state.moments
        gradient = _checked(gradient, mean.shape)
        steps = state.steps + 1
        mean = _mixed(self.beta1, mean, gradient)
        square = _mixed(self.beta2, square, gradient * gradient)
        rate = self.learning_rate * math.sqrt(1.0 - self.beta2**steps) / (1.0 - self.beta1**steps)
        change = np.float32(-rate) * mean / (np.sqrt(square) + np.float32(self.epsilon))
        return change, OptimizerState(steps, (mean, square))


@nested_settings
class SGD(_Optimizer):
    """Stochastic gradient descent with momentum: velocity = momentum * velocity + gradient.

    This is the form of Uber's 2018 code for one machine. OpenAI's code and the 2018 code for clusters multiply the
    gradient by 1 - momentum, so that their equivalent learning rate is 1 / (1 - momentum) times larger.
    """

    learning_rate: Positive32
    """Factor of the velocity in a step."""
    momentum: Decay = 0.9
    """Share of the velocity that each step retains; 0 is plain gradient descent."""
    type: Literal["sgd"] = "sgd"
    """Name of the optimizer."""

    moments = 1

    def step(self, state: OptimizerState, gradient: np.ndarray) -> tuple[np.ndarray, OptimizerState]:
        """Compute one step."""
        (velocity,) = state.moments
        velocity = np.float32(self.momentum) * velocity + _checked(gradient, velocity.shape)
        return np.float32(-self.learning_rate) * velocity, OptimizerState(state.steps + 1, (velocity,))


@nested_settings
class ClipUp(_Optimizer):
    """ClipUp (Toklu et al. 2020, https://arxiv.org/abs/2008.02387): normalized gradients, momentum and a maximum speed.

    Only the direction of a gradient matters, so that steps do not depend on the scale of returns.
    """

    learning_rate: Positive32 = 0.15
    """Length of the vector that each gradient adds to the velocity."""
    momentum: Decay = 0.9
    """Share of the velocity that each step retains."""
    max_speed: Positive32 | None = None
    """Maximum norm of the velocity, which is the step; by default 2 * learning_rate."""
    type: Literal["clipup"] = "clipup"
    """Name of the optimizer."""

    moments = 1

    def step(self, state: OptimizerState, gradient: np.ndarray) -> tuple[np.ndarray, OptimizerState]:
        """Compute one step."""
        (velocity,) = state.moments
        gradient = _checked(gradient, velocity.shape)
        length, limit = norm(gradient), self.max_speed or 2 * self.learning_rate
        velocity = np.float32(self.momentum) * velocity
        if length:
            velocity = velocity - np.float32(self.learning_rate) * (gradient / np.float32(length))
        if (speed := norm(velocity)) > limit:
            velocity = np.float32(limit / speed) * velocity
        return velocity, OptimizerState(state.steps + 1, (velocity,))


def _tag(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("type", "adam"))
    return getattr(value, "type", "no table")


# The type of the setting optimizer.
Optimizer = Annotated[
    Annotated[Adam, Tag("adam")] | Annotated[SGD, Tag("sgd")] | Annotated[ClipUp, Tag("clipup")],
    Discriminator(
        _tag,
        custom_error_type="optimizer",
        custom_error_message='Input should be a table with type "adam", "sgd" or "clipup"',
    ),
]


def _mixed(stays: float, mean: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.float32(stays) * mean + np.float32(1.0 - stays) * value


def _checked(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the gradient as float32 [D] if it is [D] and finite."""
    given = np.asarray(gradient)
    if given.shape != shape:
        raise ValueError(f"gradient has shape {list(given.shape)}, expected {list(shape)}")
    with np.errstate(over="ignore"):
        gradient = given.astype(np.float32, copy=False)
    for i in np.flatnonzero(~np.isfinite(gradient))[:1]:
        raise ValueError(f"gradient {i} is {given[i]}, expected a number that is finite in 32 bits")
    return gradient
