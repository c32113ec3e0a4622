"""The native core without TensorFlow, through its C interface (custom_ops/c_api/neuroevo.h): NumPy in, NumPy out.

The shape of every array is checked here: a ValueError names the array, its shape and the expected one. What the numbers
in it mean is checked by the core: a NativeError.

The lane runner here plays the same episodes as the TensorFlow graph, bit for bit; tests hold them against each other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from neuroevo.native.ffi import call, i64, indices, ref, shaped, sized, strings
from neuroevo.native.library import BACKENDS, core, cuda
from neuroevo.networks.layers import take_apart


class Population:
    """R rows of weights. networks: layer lists in text form. backend: "cpu", "reference", or "cuda" for a GPU. dtype:
    what networks are evaluated in, "float32" or "int8". With int8, rows from float_rows on (None: no row) keep no
    float32 weights: they cannot be read, and perturb starts from them only in place and only after init
    or assign.

    dimensions: D of each network. observation_dtype, observation_shape, outputs: of all networks, which agree in them
    (the core sees to that), so that they hold for any row.
    """

    def __init__(
        self,
        networks: Sequence[str],
        rows: int,
        backend: str = "cpu",
        dtype: str = "float32",
        float_rows: int | None = None,
    ):
        self._handle = ctypes.c_void_p()
        if backend == BACKENDS["gpu"]:
            cuda()  # without it there is no such backend
        texts = strings(networks)
        sizes = i64(len(texts)), i64(rows)
        floats = i64(-1 if float_rows is None else float_rows)
        call("population_make", backend.encode(), texts, *sizes, dtype.encode(), floats, ref(self._handle))
        self.dimensions = [self._dimension(network) for network in range(len(networks))]
        first = take_apart(networks[0], np.zeros(self.dimensions[0], np.float32))
        self.observation_dtype = np.dtype(first.dtype)
        self.observation_shape, self.outputs = first.shape, first.outputs

    def __del__(self) -> None:
        if self._handle:
            core().neuroevo_population_free(self._handle)

    def _dimension(self, network: int) -> int:
        dimension = ctypes.c_int64()
        call("population_dimension", self._handle, i64(network), ref(dimension))
        return dimension.value

    def init(self, rows: Sequence[int], networks: Sequence[int], seeds: Sequence[int]) -> None:
        """Initial weights of the networks [K] from the seeds [K] into the rows [K]."""
        rows = indices("rows", rows)
        networks = shaped("networks", networks, np.int32, rows.shape)
        seeds = shaped("seeds", seeds, np.uint64, rows.shape)
        call("population_init", self._handle, *sized(rows), networks, seeds)

    def assign(self, rows: Sequence[int], networks: Sequence[int], thetas: np.ndarray) -> None:
        """Thetas [K, max D] into the rows [K]."""
        rows = indices("rows", rows)
        networks = shaped("networks", networks, np.int32, rows.shape)
        thetas = shaped("thetas", thetas, np.float32, (len(rows), max(self.dimensions)))
        call("population_assign", self._handle, *sized(rows), networks, thetas, i64(thetas.shape[1]))

    def read(self, rows: Sequence[int]) -> np.ndarray:
        """Weights of the rows, float32 [K, max D]."""
        rows = indices("rows", rows)
        out = np.zeros((len(rows), max(self.dimensions)), np.float32)
        call("population_read", self._handle, *sized(rows), out, i64(out.shape[1]))
        return out

    def perturb(self, dst: Sequence[int], src: Sequence[int], seeds: Sequence[int], scales: Sequence[float]) -> None:
        """In order: theta of dst = theta of src + scale * noise(seed)."""
        dst = indices("dst", dst)
        src = shaped("src", src, np.int64, dst.shape)
        seeds = shaped("seeds", seeds, np.uint64, dst.shape)
        scales = shaped("scales", scales, np.float32, dst.shape)
        call("population_perturb", self._handle, dst, src, i64(len(dst)), seeds, scales)

    def set_reference(self, observations: np.ndarray) -> None:
        """What vbn layers take their statistics of: observations [B, *observation_shape], once. ValueError for others
        than of observation_dtype.
        """
        observations = np.ascontiguousarray(observations)
        if observations.dtype != self.observation_dtype or observations.shape[1:] != self.observation_shape:
            raise ValueError(
                f"observations have dtype {observations.dtype} and shape {list(observations.shape)}, "
                f"expected {self.observation_dtype} and {['B', *self.observation_shape]}"
            )
        call("population_set_reference", self._handle, *sized(observations))

    def prepare(self, rows: Sequence[int]) -> None:
        """Statistics of the rows' vbn layers: after each time that a row was filled, before it is played."""
        call("population_prepare", self._handle, *sized(indices("rows", rows)))

    def statistics(self, row: int) -> np.ndarray:
        """Of a prepared row's vbn layers, as custom_ops/networks/network.h orders them: float32 [S]."""
        count = i64()
        call("population_statistics", self._handle, i64(row), None, i64(0), ref(count))
        out = np.zeros(count.value, np.float32)
        call("population_statistics", self._handle, i64(row), out, count, ref(count))
        return out

    def forward(self, rows: Sequence[int], observations: np.ndarray, outputs: int) -> np.ndarray:
        """Outputs float32 [K, outputs] of the rows' networks on the observations [K, *observation_shape].

        ValueError also for observations that are not of observation_dtype: they would be read as something else.
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
        call("population_forward", self._handle, *sized(rows), observations, out)
        return out
