"""Reads policies that Brax saved (brax.io.model.save_params) without Brax, and without running what a file may ask for.

Such a file is a pickle of the statistics of observations and the weights of a multilayer perceptron, as Brax's es, ppo
and others return them. It does not say the activation, which somebody has to know; Brax's es has relu by default.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.runs.metrics_files import Elite

_EXPECTED = "expected a file that brax.io.model.save_params wrote"


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
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    try:
        params = _Unpickler(io.BytesIO(data)).load()
    except UserError:
        raise
    except Exception as error:  # a damaged pickle raises whatever it likes
        raise UserError(f"{path} cannot be read ({error}), {_EXPECTED}") from error
    try:
        statistics, policy = params[0], params[1]["params"]
        layers = [policy[f"hidden_{number}"] for number in range(len(policy))]
        kernels = tuple(np.asarray(layer["kernel"], np.float32) for layer in layers)
        biases = tuple(np.asarray(layer["bias"], np.float32) for layer in layers)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path} has no weights of dense layers hidden_0, hidden_1, ..., {_EXPECTED}") from error
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
    if not isinstance(statistics, _Statistics):
        return None
    mean, std = np.asarray(statistics.mean, np.float64), np.asarray(statistics.std, np.float64)
    if mean.shape != (numbers,) or std.shape != (numbers,) or not (std > 0).all() or not np.isfinite([mean, std]).all():
        raise UserError(f"{path} has statistics of shape {mean.shape}, expected {numbers} finite ones above 0")
    return None if not mean.any() and (std == 1).all() else Normalizer(0, mean, std)


class _Statistics:
    """Brax's RunningStatisticsState; its attributes are what the file says."""

    mean: Any
    std: Any


class _Anything:
    """Something that is not needed."""

    def __init__(self, *_: Any):
        pass


def _array(make: Callable[..., np.ndarray], arguments: Sequence[Any], state: Any, _: Mapping[str, Any]) -> np.ndarray:
    """An array of JAX, which pickles one of NumPy."""
    made = make(*arguments)
    made.__setstate__(state)
    return made


class _Unpickler(pickle.Unpickler):
    """Makes arrays, statistics and dictionaries, and nothing else."""

    known: ClassVar[dict[tuple[str, str], Any]] = {
        ("brax.training.acme.running_statistics", "RunningStatisticsState"): _Statistics,
        ("brax.training.acme.running_statistics", "NormalizationMode"): _Anything,
        ("brax.training.types", "UInt64"): _Anything,
        ("flax.core.frozen_dict", "FrozenDict"): dict,
        ("jax._src.array", "_reconstruct_array"): _array,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        """What a pickle may call."""
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return super().find_class("numpy._core.multiarray", name)
        if (module, name) not in self.known:
            raise UserError(f"the file asks for {module}.{name}, which no policy of Brax needs; {_EXPECTED}")
        return self.known[module, name]
