"""The native core without TensorFlow, through its C interface (custom_ops/rollout/c_api.h): NumPy in, NumPy out.

The C interface takes pointers and trusts their lengths, so the shape of every array is checked here: a ValueError names
the array, its shape and the expected one. What the numbers in it mean is checked by the core: a NativeError.

The lane runner here plays the same episodes as the TensorFlow graph, bit for bit; tests hold them against each other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from neuroevo.envs import EnvRecipe
from neuroevo.episodes import Episode, Outcomes
from neuroevo.layers import take_apart
from neuroevo.networks import input_line, to_text
from neuroevo.ops import BACKENDS, core, cuda


class NativeError(RuntimeError):
    """A call of the native core failed; the message is the core's own."""


class _EnvSpec(ctypes.Structure):
    _fields_ = [
        ("observation_dtype", ctypes.c_char_p),
        ("observation_shape", ctypes.POINTER(ctypes.c_int64)),
        ("observation_rank", ctypes.c_int64),
        ("action_dtype", ctypes.c_char_p),
        ("num_actions", ctypes.c_int64),
        ("frame_skip", ctypes.c_int64),
        ("behaviour_dtype", ctypes.c_char_p),
        ("behaviour_shape", ctypes.POINTER(ctypes.c_int64)),
        ("behaviour_rank", ctypes.c_int64),
        ("render_shape", ctypes.POINTER(ctypes.c_int64)),
        ("render_rank", ctypes.c_int64),
        ("action_low", ctypes.POINTER(ctypes.c_float)),
        ("action_high", ctypes.POINTER(ctypes.c_float)),
        ("state_size", ctypes.c_int64),
    ]


class _Episodes(ctypes.Structure):
    _fields_ = [
        ("episodes", ctypes.c_int64),
        ("genome_of", ctypes.c_void_p),
        ("seeds", ctypes.c_void_p),
        ("max_frames", ctypes.c_void_p),
        ("genomes", ctypes.c_int64),
        ("networks", ctypes.c_void_p),
        ("sources", ctypes.c_void_p),
        ("base_seeds", ctypes.c_void_p),
        ("chain_splits", ctypes.c_void_p),
        ("chain_seeds", ctypes.c_void_p),
        ("chain_scales", ctypes.c_void_p),
    ]


class EnvPool:
    """S environments of one family. slots: int64 [K], different; arrays are converted to the dtypes given here.

    observation_shape, observation_dtype: of one observation. behaviour_shape, behaviour_dtype: of one behaviour; () if
    there is none. render_shape: (height, width, 3); () if it cannot be rendered. action_dtype: int32 for one action in
    [0, num_actions), float32 for a vector of num_actions, each meant to lie in action_low to action_high. frame_skip:
    emulator frames per step. state_size: numbers of a state; 0 if there is none.
    """

    def __init__(self, env: EnvRecipe, slots: int):
        self._handle = ctypes.c_void_p()
        options = _strings(env.options)
        _check("env_pool_make", env.family.encode(), options, _i64(len(options)), _i64(slots), _ref(self._handle))
        spec = _EnvSpec()
        _check("env_pool_spec", self._handle, _ref(spec))
        self.observation_dtype = np.dtype(spec.observation_dtype.decode())
        self.observation_shape = tuple(spec.observation_shape[: spec.observation_rank])
        self.action_dtype = np.dtype(spec.action_dtype.decode())
        self.num_actions = spec.num_actions
        self.frame_skip = spec.frame_skip
        self.behaviour_dtype = np.dtype(spec.behaviour_dtype.decode())
        self.behaviour_shape = tuple(spec.behaviour_shape[: spec.behaviour_rank])
        self.render_shape = tuple(spec.render_shape[: spec.render_rank])
        vector = self.num_actions if self.action_dtype == np.float32 else 0
        self.action_low = np.array(spec.action_low[:vector], np.float32)
        self.action_high = np.array(spec.action_high[:vector], np.float32)
        self.state_size = spec.state_size

    def __del__(self) -> None:
        if self._handle:
            core().neuroevo_env_pool_free(self._handle)

    def reset(self, slots: Sequence[int], seeds: Sequence[int], max_frames: Sequence[int]) -> None:
        """Starts episodes; seeds [K], max_frames [K] in emulator frames (0: the family's own limit)."""
        slots = _indices("slots", slots)
        seeds = _shaped("seeds", seeds, np.uint64, slots.shape)
        max_frames = _shaped("max_frames", max_frames, np.int64, slots.shape)
        _check("env_reset", self._handle, *_sized(slots), seeds, max_frames)

    def step(self, slots: Sequence[int], actions: Sequence) -> tuple[np.ndarray, np.ndarray]:
        """Steps; actions [K] or [K, num_actions]. Returns rewards float64 [K] and dones bool [K]."""
        slots = _indices("slots", slots)
        action_shape = () if self.action_dtype == np.int32 else (self.num_actions,)
        actions = _shaped("actions", actions, self.action_dtype, (len(slots), *action_shape))
        rewards, dones = np.zeros(len(slots)), np.zeros(len(slots), bool)
        _check("env_step", self._handle, *_sized(slots), actions, rewards, dones)
        return rewards, dones

    def observe(self, slots: Sequence[int]) -> np.ndarray:
        """Observations [K, *observation_shape]."""
        return self._copy_out("env_observe", slots, self.observation_shape, self.observation_dtype)

    def behaviour(self, slots: Sequence[int]) -> np.ndarray:
        """What characterises the environments now, for novelty search: [K, *behaviour_shape]. Of Atari, the RAM; of
        MuJoCo, x and y of the torso."""
        return self._copy_out("env_behaviour", slots, self.behaviour_shape, self.behaviour_dtype)

    def render(self, slots: Sequence[int]) -> np.ndarray:
        """Current screens as red, green, blue: uint8 [K, height, width, 3]."""
        return self._copy_out("env_render", slots, self.render_shape, np.uint8)

    def state(self, slots: Sequence[int]) -> np.ndarray:
        """What episodes go on from: float64 [K, state_size]. Of MuJoCo, the joints' positions, then velocities."""
        return self._copy_out("env_state", slots, (self.state_size,), np.float64)

    def fault(self, slot: int) -> str:
        """Why the slot's episode was broken off, where its simulation failed; "" where it did not."""
        text = ctypes.c_char_p()
        _check("env_fault", self._handle, _i64(slot), _ref(text))
        return text.value.decode()

    def _copy_out(self, function: str, slots: Sequence[int], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        slots = _indices("slots", slots)
        out = np.zeros((len(slots), *shape), dtype)
        _check(function, self._handle, *_sized(slots), out)
        return out


class Population:
    """R rows of weights. networks: layer lists in text form. backend: "cpu", "reference", or "cuda" for a GPU. dtype:
    what networks are evaluated in, "float32" or "int8". With int8, rows from float_rows on (None: no row) keep no
    float32 weights: they cannot be read, and perturb starts from them only in place and only after init.

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
        texts = _strings(networks)
        sizes = _i64(len(texts)), _i64(rows)
        floats = _i64(-1 if float_rows is None else float_rows)
        _check("population_make", backend.encode(), texts, *sizes, dtype.encode(), floats, _ref(self._handle))
        self.dimensions = [self._dimension(network) for network in range(len(networks))]
        first = take_apart(networks[0], np.zeros(self.dimensions[0], np.float32))
        self.observation_dtype = np.dtype(first.dtype)
        self.observation_shape, self.outputs = first.shape, first.outputs

    def __del__(self) -> None:
        if self._handle:
            core().neuroevo_population_free(self._handle)

    def _dimension(self, network: int) -> int:
        dimension = ctypes.c_int64()
        _check("population_dimension", self._handle, _i64(network), _ref(dimension))
        return dimension.value

    def init(self, rows: Sequence[int], networks: Sequence[int], seeds: Sequence[int]) -> None:
        """Initial weights of the networks [K] from the seeds [K] into the rows [K]."""
        rows = _indices("rows", rows)
        networks = _shaped("networks", networks, np.int32, rows.shape)
        seeds = _shaped("seeds", seeds, np.uint64, rows.shape)
        _check("population_init", self._handle, *_sized(rows), networks, seeds)

    def assign(self, rows: Sequence[int], networks: Sequence[int], thetas: np.ndarray) -> None:
        """thetas [K, max D] into the rows [K]."""
        rows = _indices("rows", rows)
        networks = _shaped("networks", networks, np.int32, rows.shape)
        thetas = _shaped("thetas", thetas, np.float32, (len(rows), max(self.dimensions)))
        _check("population_assign", self._handle, *_sized(rows), networks, thetas, _i64(thetas.shape[1]))

    def read(self, rows: Sequence[int]) -> np.ndarray:
        """Weights of the rows, float32 [K, max D]."""
        rows = _indices("rows", rows)
        out = np.zeros((len(rows), max(self.dimensions)), np.float32)
        _check("population_read", self._handle, *_sized(rows), out, _i64(out.shape[1]))
        return out

    def perturb(self, dst: Sequence[int], src: Sequence[int], seeds: Sequence[int], scales: Sequence[float]) -> None:
        """In order: theta of dst = theta of src + scale * noise(seed)."""
        dst = _indices("dst", dst)
        src = _shaped("src", src, np.int64, dst.shape)
        seeds = _shaped("seeds", seeds, np.uint64, dst.shape)
        scales = _shaped("scales", scales, np.float32, dst.shape)
        _check("population_perturb", self._handle, dst, src, _i64(len(dst)), seeds, scales)

    def forward(self, rows: Sequence[int], observations: np.ndarray, outputs: int) -> np.ndarray:
        """Outputs float32 [K, outputs] of the rows' networks on the observations [K, *observation_shape].

        ValueError also for observations that are not of observation_dtype: they would be read as something else.
        """
        rows = _indices("rows", rows)
        if outputs != self.outputs:
            raise ValueError(f"outputs is {outputs}, expected {self.outputs} as the networks have")
        if np.asarray(observations).dtype != self.observation_dtype:
            found = np.asarray(observations).dtype
            raise ValueError(f"observations have dtype {found}, expected {self.observation_dtype}")
        shape = (len(rows), *self.observation_shape)
        observations = _shaped("observations", observations, self.observation_dtype, shape)
        out = np.zeros((len(rows), outputs), np.float32)
        _check("population_forward", self._handle, *_sized(rows), observations, out)
        return out


def run_episodes(
    env: EnvRecipe,
    networks: Sequence[Callable[[str, int], list[str]]],
    episodes: Sequence[Episode],
    *,
    lanes: int,
    slots: int,
    backend: str = "cpu",
    dtype: str = "float32",
) -> Outcomes:
    """Plays episodes with the lane runner; every genome is made from its chain. Outcomes are in order."""
    pool = EnvPool(env, lanes * slots)
    observation = input_line(pool.observation_dtype.name, pool.observation_shape)
    texts = [to_text(net(observation, pool.num_actions)) for net in networks]
    population = Population(texts, lanes * slots, backend, dtype, float_rows=0)
    genomes = list(dict.fromkeys(episode.genome for episode in episodes))
    index = {genome: i for i, genome in enumerate(genomes)}
    mutations = [mutation for genome in genomes for mutation in genome.chain]
    arrays = {
        "genome_of": _array([index[episode.genome] for episode in episodes], np.int64),
        "seeds": _array([episode.seed for episode in episodes], np.uint64),
        "max_frames": _array([episode.max_steps * pool.frame_skip for episode in episodes], np.int64),
        "networks": _array([genome.network for genome in genomes], np.int32),
        "sources": np.full(len(genomes), -1, np.int64),
        "base_seeds": _array([genome.base for genome in genomes], np.uint64),
        "chain_splits": np.cumsum([0, *(len(genome.chain) for genome in genomes)], dtype=np.int64),
        "chain_seeds": _array([seed for seed, _ in mutations], np.uint64),
        "chain_scales": _array([scale for _, scale in mutations], np.float32),
    }
    pointers = {name: array.ctypes.data for name, array in arrays.items()}
    request = _Episodes(episodes=len(episodes), genomes=len(genomes), **pointers)
    returns, steps = np.zeros(len(episodes)), np.zeros(len(episodes), np.int64)
    handles = pool._handle, population._handle
    _check("run_lanes", *handles, _i64(lanes), _i64(slots), _i64(0), _ref(request), returns, steps)
    return Outcomes(returns, steps)


_i64 = ctypes.c_int64
_ref = ctypes.byref


def _array(values: Sequence, dtype: np.dtype | type) -> np.ndarray:
    return np.ascontiguousarray(values, dtype)


def _indices(name: str, values: Sequence[int]) -> np.ndarray:
    """Slots or rows: int64 [K]. ValueError: they have another rank."""
    indices = np.asarray(values, np.int64)
    if indices.ndim != 1:
        raise ValueError(f"{name} has shape {list(indices.shape)}, expected [K]")
    return np.ascontiguousarray(indices)


def _shaped(name: str, values: Sequence, dtype: np.dtype | type, shape: tuple[int, ...]) -> np.ndarray:
    """The values as a contiguous array. ValueError: they have another shape."""
    array = np.asarray(values, dtype)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {list(array.shape)}, expected {list(shape)}")
    return np.ascontiguousarray(array)


def _sized(rows: np.ndarray) -> tuple[np.ndarray, ctypes.c_int64]:
    return rows, _i64(len(rows))


def _strings(texts: Sequence[str]) -> ctypes.Array:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def _check(function: str, *arguments: object) -> None:
    """Calls neuroevo_<function>; arrays go as pointers, kept alive by this frame until it returns."""
    library = core()
    pointers = [ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
    if getattr(library, f"neuroevo_{function}")(*pointers) != 0:
        library.neuroevo_last_error.restype = ctypes.c_char_p
        raise NativeError(library.neuroevo_last_error().decode())
