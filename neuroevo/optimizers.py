"""Adam and SGD with momentum on flat float32 vectors, as evolution strategies use them: state in, state out.

They are settings, which a configuration may hold: {type = "adam", stepsize = 0.01}; without a type it is Adam.
Gradients are those of a loss to be made smaller: evolution strategies, which maximize, hand over minus their estimate
plus l2 * theta. All arithmetic on vectors is float32, element by element, so that the bits do not depend on the
machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag

from neuroevo.settings import Positive32, nested_settings

Decay = Annotated[float, Field(ge=0, lt=1)]  # how much of a running mean stays at each step


@dataclass(frozen=True, eq=False)
class OptimizerState:
    """Between two steps. Its arrays are never written to, so states may share them."""

    steps: int
    """Taken so far."""
    moments: tuple[np.ndarray, ...]
    """float32 [D] each. Adam: running means of the gradient and of its square. SGD: the velocity."""


@nested_settings
class Adam:
    """Adam (Kingma and Ba 2014, https://arxiv.org/abs/1412.6980), in the form that ends its section 2: the bias of both
    means is corrected in the stepsize, and epsilon is added to a root that is not corrected. So do OpenAI's evolution
    strategies and the 2018 code; Algorithm 1 of the paper and most libraries correct the root too, which makes a
    difference only where gradients are as small as epsilon."""

    stepsize: Positive32 = 0.01
    """About the length of a step in each weight."""
    beta1: Decay = 0.9
    """How much of the gradient's running mean stays at each step."""
    beta2: Decay = 0.999
    """How much of its square's running mean stays at each step."""
    epsilon: Positive32 = 1e-8
    """Added to the root of the squares' mean."""
    type: Literal["adam"] = "adam"
    """Name of the optimizer."""

    def init(self, dimension: int) -> OptimizerState:
        """The state before the first step of a vector [D]."""
        return OptimizerState(0, (np.zeros(dimension, np.float32), np.zeros(dimension, np.float32)))

    def step(self, state: OptimizerState, gradient: np.ndarray) -> tuple[np.ndarray, OptimizerState]:
        """What to add to theta, float32 [D], and the next state. ValueError: the gradient is not [D] or not finite."""
        mean, square = state.moments
        gradient = _checked(gradient, mean.shape)
        steps = state.steps + 1
        mean = _mixed(self.beta1, mean, gradient)
        square = _mixed(self.beta2, square, gradient * gradient)
        rate = self.stepsize * math.sqrt(1.0 - self.beta2**steps) / (1.0 - self.beta1**steps)
        change = np.float32(-rate) * mean / (np.sqrt(square) + np.float32(self.epsilon))
        return change, OptimizerState(steps, (mean, square))


@nested_settings
class SGD:
    """Stochastic gradient descent with momentum: velocity = momentum * velocity + gradient, as the 2018 code for one
    machine had it. OpenAI's code and the 2018 code for clusters weigh the gradient by 1 - momentum: their stepsize is
    1 / (1 - momentum) times this one."""

    stepsize: Positive32
    """How far a step goes along the velocity."""
    momentum: Decay = 0.9
    """How much of the velocity stays at each step; 0 is plain gradient descent."""
    type: Literal["sgd"] = "sgd"
    """Name of the optimizer."""

    def init(self, dimension: int) -> OptimizerState:
        """The state before the first step of a vector [D]."""
        return OptimizerState(0, (np.zeros(dimension, np.float32),))

    def step(self, state: OptimizerState, gradient: np.ndarray) -> tuple[np.ndarray, OptimizerState]:
        """What to add to theta, float32 [D], and the next state. ValueError: the gradient is not [D] or not finite."""
        (velocity,) = state.moments
        velocity = np.float32(self.momentum) * velocity + _checked(gradient, velocity.shape)
        return np.float32(-self.stepsize) * velocity, OptimizerState(state.steps + 1, (velocity,))


def _tag(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("type", "adam"))
    return getattr(value, "type", "no table")


Optimizer = Annotated[  # of a setting
    Annotated[Adam, Tag("adam")] | Annotated[SGD, Tag("sgd")],
    Discriminator(
        _tag,
        custom_error_type="optimizer",
        custom_error_message='Input should be a table with type "adam" or "sgd"',
    ),
]


def _mixed(stays: float, mean: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.float32(stays) * mean + np.float32(1.0 - stays) * value


def _checked(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """float32 [D]."""
    given = np.asarray(gradient)
    if given.shape != shape:
        raise ValueError(f"gradient has shape {list(given.shape)}, expected {list(shape)}")
    with np.errstate(over="ignore"):
        gradient = given.astype(np.float32, copy=False)
    for i in np.flatnonzero(~np.isfinite(gradient))[:1]:
        raise ValueError(f"gradient {i} is {given[i]}, expected a number that is finite in 32 bits")
    return gradient
