"""Reads policies that Brax saved (brax.io.model.save_params) without Brax, and without running what a file may ask for.

Such a file is a pickle of the statistics of observations and the weights of a multilayer perceptron, as Brax's es, ppo
and others return them. It does not say the activation, which somebody has to know; Brax's es has relu by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.analysis import policy_pickle
from neuroevo.analysis.policy_pickle import EXPECTED, Statistics, array_of
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.runs.reader import Elite
from neuroevo.system.reading import read_regular


@dataclass(frozen=True)
class BraxPolicy:
    """A policy of A numbers, each the tanh of an output.

    Attributes:
        observation_size: n.
        hidden: Units of its hidden layers.
        outputs: How many its last layer has: A, or 2A where the second half are deviations of Brax's random actions.
        kernels: Of its layers, float32 [inputs, units].
        biases: float32 [units].
        normalizer: Mean and deviation of observations; None if nothing was counted.
    """

    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    normalizer: Normalizer | None

    @property
    def observation_size(self) -> int:
        """See the class."""
        return self.kernels[0].shape[0]

    @property
    def hidden(self) -> list[int]:
        """See the class."""
        return [kernel.shape[1] for kernel in self.kernels[:-1]]

    @property
    def outputs(self) -> int:
        """See the class."""
        return self.kernels[-1].shape[1]

    def tables(self, env: str) -> dict[str, Any]:
        """The sections of a configuration that plays it.

        Args:
            env: The environment's name.
        """
        normalized = self.normalizer is not None
        return {
            "env": {"name": env},
            "network": {
                "name": "mlp",
                "hidden": self.hidden,
                "activation": "relu",
                "normalize_observations": normalized,
            },
            "algorithm": {"name": "es"},
            "training": {"generations": 1},
        }

    def elite(self, numbers: int, actions: int) -> Elite:
        """The policy without randomness, as the package's mlp plays it.

        Args:
            numbers: n of the environment.
            actions: A.

        Raises:
            UserError: It is made for other numbers.
        """
        if self.observation_size != numbers:
            raise UserError(
                f"the policy sees {self.observation_size} numbers, expected {numbers} as are observed there"
            )
        if self.outputs not in (actions, 2 * actions):
            raise UserError(f"the policy has {self.outputs} outputs, expected {actions} or {2 * actions}")
        parts: list[np.ndarray] = []
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            units = actions if kernel is self.kernels[-1] else len(bias)
            parts += [kernel[:, :units].reshape(-1), bias[:units]]
        return Elite(Genome(Center(np.concatenate(parts))), self.normalizer)


def read_policy(path: Path) -> BraxPolicy:
    """Reads a file.

    Args:
        path: The file.

    Raises:
        UserError: It cannot be read, is no such file, or its network is no multilayer perceptron.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    try:
        params = policy_pickle.read(data)
    except UserError:
        raise
    except Exception as error:  # a damaged pickle raises whatever it likes
        raise UserError(f"{path} cannot be read ({str(error)[:200]}), {EXPECTED}") from error
    try:
        statistics, policy = params[0], params[1]["params"]
        layers = [policy[f"hidden_{number}"] for number in range(len(policy))]
        with np.errstate(over="ignore"):  # what is not finite is refused below
            kernels = tuple(array_of(layer["kernel"], np.float32) for layer in layers)
            biases = tuple(array_of(layer["bias"], np.float32) for layer in layers)
    except Exception as error:  # of whatever is there instead
        raise UserError(f"{path} has no weights of dense layers hidden_0, hidden_1, ..., {EXPECTED}") from error
    _check(path, kernels, biases)
    return BraxPolicy(kernels, biases, _normalizer(path, statistics, kernels[0].shape[0]))


def _check(path: Path, kernels: Sequence[np.ndarray], biases: Sequence[np.ndarray]) -> None:
    shapes = [kernel.shape for kernel in kernels]
    fits = len(kernels) > 1 and all(kernel.ndim == 2 for kernel in kernels)
    fits = fits and all(bias.shape == kernel.shape[1:] for kernel, bias in zip(kernels, biases, strict=True))
    if not fits or any(before[1] != after[0] for before, after in zip(shapes, shapes[1:], strict=False)):
        raise UserError(f"{path} has kernels of shapes {shapes}, expected two or more dense layers that fit each other")
    if not all(np.isfinite(values).all() for values in (*kernels, *biases)):
        raise UserError(f"{path} has weights that are not finite")


def _normalizer(path: Path, statistics: Any, numbers: int) -> Normalizer | None:
    if not isinstance(statistics, Statistics):
        return None
    try:
        mean, std = array_of(statistics.mean, np.float64), array_of(statistics.std, np.float64)
    except (AttributeError, TypeError) as error:
        raise UserError(f"{path} has no mean and std of observations ({error}), {EXPECTED}") from error
    if mean.shape != (numbers,) or std.shape != (numbers,) or not (std > 0).all() or not np.isfinite([mean, std]).all():
        raise UserError(f"{path} has statistics of shape {mean.shape}, expected {numbers} finite ones above 0")
    return None if not mean.any() and (std == 1).all() else Normalizer(0, mean, std)
