"""Populations of the native core through its C interface, with NumPy arrays and without TensorFlow.

Methods check the shape of every array: a ValueError contains the array's name, its shape and the expected shape. The
core checks the values and raises NativeError.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from neuroevo.core.genome import GAUSSIAN, Kind, LowRank
from neuroevo.native.ffi import indices, ref, shaped, sized, strings
from neuroevo.native.library import BACKENDS, call, core, cuda
from neuroevo.networks.layers import unpack_weights

Ints = Sequence[int] | np.ndarray


def padded(thetas: Sequence[np.ndarray], dimensions: Sequence[int]) -> np.ndarray:
    """Return the weights of K networks as one array.

    Args:
        thetas: [K], float32 [D of its network] each.
        dimensions: D of each network of a population.

    Returns:
        float32 [K, max D], zeros after the D of a smaller network.
    """
    rows = np.zeros((len(thetas), max(dimensions)), np.float32)
    for row, theta in zip(rows, thetas, strict=True):
        row[: len(theta)] = theta
    return rows


class Population:
    """Population of R rows of weights. Rows are int64 [K]; arrays are converted to the dtypes given here.

    All networks have the same observations and the same number of outputs (the core checks this), so that
    observation_dtype, observation_shape and outputs hold for any row.

    Attributes:
        dimensions: D of each network.
        observation_dtype: Dtype of the networks' observations.
        observation_shape: Shape of the networks' observations.
        outputs: Number of a network's outputs.
        recurrent: Whether a network has an lstm layer, and so a state.
    """

    def __init__(
        self,
        networks: Sequence[str],
        rows: int,
        backend: str = "cpu",
        dtype: str = "float32",
        float_rows: int | None = None,
        kind: Kind = GAUSSIAN,
    ):
        """Create empty rows.

        Args:
            networks: Layer lists in text form.
            rows: R.
            backend: "cpu", "reference", or "cuda" for a GPU.
            dtype: Dtype in which networks are evaluated, "float32" or "int8".
            float_rows: With int8, rows from this row on keep no float32 weights: they cannot be read, and perturb
                starts from them only in place and only after init or assign. None: all rows keep them.
            kind: Kind of the mutations. With float32 and noise of low rank, rows from float_rows on are members: they
                refer to one of the other rows, their center, and only perturb fills them.

        Raises:
            NativeError: A network, the backend or a size is invalid.
        """
        self._handle, self._free = ctypes.c_void_p(), core().neuroevo_population_free
        if backend == BACKENDS["gpu"]:
            cuda()  # registers the backend
        texts = strings(networks)
        floats = -1 if float_rows is None else float_rows
        made = ref(self._handle)
        if isinstance(kind, LowRank):
            if dtype != "float32":
                raise ValueError(f"rank is {kind.rank} with dtype {dtype}, expected float32")
            call("population_make_low_rank", backend.encode(), texts, len(texts), rows, floats, kind.rank, made)
        else:
            call("population_make", backend.encode(), texts, len(texts), rows, dtype.encode(), floats, made)
        self.dimensions = [self._dimension(network) for network in range(len(networks))]
        first = unpack_weights(networks[0], np.zeros(self.dimensions[0], np.float32))
        self.observation_dtype = np.dtype(first.dtype)
        self.observation_shape, self.outputs = first.shape, first.outputs
        recurrent = ctypes.c_int()
        call("population_recurrent", self._handle, ref(recurrent))
        self.recurrent = bool(recurrent.value)

    def __del__(self) -> None:
        """Free the rows."""
        if self._handle.value:
            self._free(self._handle)

    @property
    def handle(self) -> ctypes.c_void_p:
        """Handle for functions of the C interface; valid as long as this object."""
        return self._handle

    def _dimension(self, network: int) -> int:
        dimension = ctypes.c_int64()
        call("population_dimension", self._handle, network, ref(dimension))
        return dimension.value

    def replace(self, index: int, network: str) -> None:
        """Replace the network with an index; rows of the old network become empty.

        No row of the network may be in use during the call.

        Args:
            index: Index of the network.
            network: Layer list in text form. Its weights and state may be at most as large as those of the largest
                network that the population was created with.

        Raises:
            NativeError: The network is invalid or too large.
        """
        call("population_replace", self._handle, index, network.encode())
        self.dimensions[index] = self._dimension(index)

    def init(self, rows: Ints, networks: Ints, seeds: Ints) -> None:
        """Fill rows with initial weights.

        Args:
            rows: [K].
            networks: [K], indices.
            seeds: [K].
        """
        rows = indices("rows", rows)
        networks = shaped("networks", networks, np.int32, rows.shape)
        seeds = shaped("seeds", seeds, np.uint64, rows.shape)
        call("population_init", self._handle, *sized(rows), networks, seeds)

    def assign(self, rows: Ints, networks: Ints, thetas: np.ndarray) -> None:
        """Fill rows with given weights.

        Args:
            rows: [K].
            networks: [K], indices.
            thetas: [K, max D].
        """
        rows = indices("rows", rows)
        networks = shaped("networks", networks, np.int32, rows.shape)
        thetas = shaped("thetas", thetas, np.float32, (len(rows), max(self.dimensions)))
        call("population_assign", self._handle, *sized(rows), networks, thetas, thetas.shape[1])

    def read(self, rows: Ints) -> np.ndarray:
        """Return the weights of rows.

        Args:
            rows: [K]. A member's weights are its center's plus the products of its factors, rounded. As forward() does
                not materialize them, its outputs differ in the last bits from those of the returned weights.

        Returns:
            float32 [K, max D].
        """
        rows = indices("rows", rows)
        out = np.zeros((len(rows), max(self.dimensions)), np.float32)
        call("population_read", self._handle, *sized(rows), out, out.shape[1])
        return out

    def perturb(
        self, dst: Ints, src: Ints, seeds: Ints, scales: Sequence[float] | np.ndarray, spreads: Ints | None = None
    ) -> None:
        """Add noise, in order: theta of dst = theta of src + scale * spread * noise(seed).

        Args:
            dst: Rows [K]; if they are members, with noise of their rank.
            src: Rows [K]; for members, their centers, which must not change while the members are used.
            seeds: [K].
            scales: [K].
            spreads: Rows [K] of float32 weights that multiply the scale, weight by weight, each product rounded to
                float32; they must not be in dst, and members have no spreads. -1 stands for ones; None: all are -1.
        """
        dst = indices("dst", dst)
        src = shaped("src", src, np.int64, dst.shape)
        seeds = shaped("seeds", seeds, np.uint64, dst.shape)
        scales = shaped("scales", scales, np.float32, dst.shape)
        if spreads is not None:
            spreads = shaped("spreads", spreads, np.int64, dst.shape)
        call("population_perturb", self._handle, dst, src, len(dst), seeds, scales, spreads)

    def set_reference(self, observations: np.ndarray) -> None:
        """Set the observations from which vbn layers compute their statistics; call it once.

        Args:
            observations: [B, *observation_shape].

        Raises:
            ValueError: The observations have another shape or dtype.
        """
        observations = np.ascontiguousarray(observations)
        if observations.dtype != self.observation_dtype or observations.shape[1:] != self.observation_shape:
            raise ValueError(
                f"observations have dtype {observations.dtype} and shape {list(observations.shape)}, "
                f"expected {self.observation_dtype} and {['B', *self.observation_shape]}"
            )
        call("population_set_reference", self._handle, *sized(observations))

    def prepare(self, rows: Ints) -> None:
        """Compute the statistics of rows' vbn layers; call this each time a row was filled, before evaluating it.

        Args:
            rows: [K].
        """
        call("population_prepare", self._handle, *sized(indices("rows", rows)))

    def statistics(self, row: int) -> np.ndarray:
        """Return the statistics of a prepared row's vbn layers.

        Args:
            row: In [0, R).

        Returns:
            float32 [S], as custom_ops/networks/network.h orders them.
        """
        count = ctypes.c_int64()
        call("population_statistics", self._handle, row, None, 0, ref(count))
        out = np.zeros(count.value, np.float32)
        call("population_statistics", self._handle, row, out, len(out), ref(count))
        return out

    def clear_states(self, states: Ints) -> None:
        """Clear the states of recurrent networks, which is required when an episode starts.

        Args:
            states: Numbers of states, [K].
        """
        call("population_clear_states", self._handle, *sized(indices("states", states)))

    def forward(self, rows: Ints, observations: np.ndarray, outputs: int, states: Ints | None = None) -> np.ndarray:
        """Evaluate the rows' networks on observations.

        Args:
            rows: [K].
            observations: [K, *observation_shape].
            outputs: Number of a network's outputs.
            states: For recurrent networks, [K]: numbers in [0, R), distinct and cleared, of the states to read and
                update. For other networks, None or the numbers of slots that continue their episodes: only the changed
                parts of their observations are then evaluated, with identical results.

        Returns:
            float32 [K, outputs].

        Raises:
            ValueError: A shape is wrong, or observations do not have observation_dtype.
        """
        rows = indices("rows", rows)
        if outputs != self.outputs:
            raise ValueError(f"outputs is {outputs}, expected {self.outputs} as the networks have")
        if np.asarray(observations).dtype != self.observation_dtype:
            found = np.asarray(observations).dtype
            raise ValueError(f"observations have dtype {found}, expected {self.observation_dtype}")
        shape = (len(rows), *self.observation_shape)
        observations = shaped("observations", observations, self.observation_dtype, shape)
        out = np.zeros((len(rows), outputs), np.float32)
        if states is not None:
            states = shaped("states", states, np.int64, rows.shape)
        call("population_forward", self._handle, *sized(rows), observations, out, states)
        return out
