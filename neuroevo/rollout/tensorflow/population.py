"""Population based on the TensorFlow ops, with the methods that evaluators need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from neuroevo.core.errors import UserError
from neuroevo.core.genome import GAUSSIAN, Kind, LowRank
from neuroevo.networks.layers import is_recurrent
from neuroevo.rollout.tensorflow.ops import int64, load_ops, raises_native_errors

Ints = Sequence[int] | np.ndarray


class OpPopulation:
    """Rows of weights as TensorFlow ops; see native.population.Population for the methods.

    Args:
        networks: Layer lists in text form.
        rows: Number of rows, R.
        backend: "cpu", "reference", or "cuda" for a GPU.
        dtype: Dtype in which networks are evaluated.
        float_rows: With int8, rows from this row on keep no float32 weights; None: all rows keep them.
        kind: Kind of the mutations; see native.population.Population.

    Attributes:
        handle: Resource handle for the ops.
        dimensions: D of each network.
        recurrent: Whether networks have lstm layers.
        has_reference: Whether set_reference() was called, which networks with vbn layers need.
    """

    @raises_native_errors
    def __init__(
        self,
        networks: Sequence[str],
        rows: int,
        backend: str = "cpu",
        dtype: str = "float32",
        float_rows: int | None = None,
        kind: Kind = GAUSSIAN,
    ):
        self.has_reference = False
        self.recurrent = any(is_recurrent(network) for network in networks)
        floats = -1 if float_rows is None else float_rows
        rank = kind.rank if isinstance(kind, LowRank) else 0
        with tf.device("/cpu:0"):
            self.handle = load_ops().population_make(
                networks=list(networks), rows=rows, backend=backend, dtype=dtype, float_rows=floats, rank=rank
            )
            self.dimensions: list[int] = load_ops().population_dimensions(self.handle).numpy().tolist()

    def replace(self, index: int, network: str) -> None:
        """Raise UserError: a lane's graph is built for fixed networks."""
        raise UserError('genomes with their own networks need hardware.engine = "native"')

    @raises_native_errors
    def init(self, rows: Ints, networks: Ints, seeds: Ints) -> None:
        """Fill rows [K] with initial weights."""
        with tf.device("/cpu:0"):
            load_ops().population_init(self.handle, int64(rows), np.array(networks, np.int32), int64(seeds))

    @raises_native_errors
    def assign(self, rows: Ints, networks: Ints, thetas: np.ndarray) -> None:
        """Fill rows [K] with thetas [K, max D]."""
        with tf.device("/cpu:0"):
            load_ops().population_assign(self.handle, int64(rows), np.array(networks, np.int32), thetas)

    @raises_native_errors
    def read(self, rows: Ints) -> np.ndarray:
        """Return the weights of rows [K], float32 [K, max D]."""
        with tf.device("/cpu:0"):
            return load_ops().population_read(self.handle, int64(rows)).numpy()

    @raises_native_errors
    def perturb(
        self, dst: Ints, src: Ints, seeds: Ints, scales: Sequence[float] | np.ndarray, spreads: Ints | None = None
    ) -> None:
        """Add noise, in order: theta of dst = theta of src + scale * spread * noise(seed); all [K]."""
        spreads = np.full(len(dst), -1) if spreads is None else spreads
        numbers = int64(dst), int64(src), int64(seeds), np.asarray(scales, np.float32), int64(spreads)
        with tf.device("/cpu:0"):
            load_ops().population_perturb(self.handle, *numbers)

    @raises_native_errors
    def set_reference(self, observations: np.ndarray) -> None:
        """Set the reference batch, [B, ...], from which vbn layers take their statistics, once."""
        with tf.device("/cpu:0"):
            load_ops().population_set_reference(self.handle, observations)
        self.has_reference = True

    @raises_native_errors
    def prepare(self, rows: Ints) -> None:
        """Compute the statistics of rows' vbn layers."""
        with tf.device("/cpu:0"):
            load_ops().population_prepare(self.handle, int64(rows))
