"""The native core without TensorFlow, through its C interface (custom_ops/rollout/c_api.h): NumPy in, NumPy out.

The shape of every array is checked here: a ValueError names the array, its shape and the expected one. What the numbers
in it mean is checked by the core: a NativeError.

The lane runner here plays the same episodes as the TensorFlow graph, bit for bit; tests hold them against each other.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from neuroevo.envs import EnvRecipe
from neuroevo.episodes import Batch, Episode, Outcomes
from neuroevo.layers import take_apart
from neuroevo.native_calls import (
    Ended,
    EnvSpec,
    Episodes,
    NativeError,
    array,
    call,
    i64,
    indices,
    ref,
    shaped,
    sized,
    strings,
)
from neuroevo.networks import input_line, to_text
from neuroevo.ops import BACKENDS, core, cuda

__all__ = ["EnvPool", "NativeError", "Population", "run_episodes"]


class EnvPool:
    """S environments of one family. slots: int64 [K], different; arrays are converted to the dtypes given here.

    observation_shape, observation_dtype: of one observation. behaviour_shape, behaviour_dtype: of one behaviour; () if
    there is none. render_shape: (height, width, 3); () if it cannot be rendered. action_dtype: int32 for one action in
    [0, num_actions), float32 for a vector of num_actions, each meant to lie in action_low to action_high. frame_skip:
    emulator frames per step. state_size: numbers of a state; 0 if there is none.
    """

    def __init__(self, env: EnvRecipe, slots: int):
        self._handle = ctypes.c_void_p()
        options = strings(env.options)
        call("env_pool_make", env.family.encode(), options, i64(len(options)), i64(slots), ref(self._handle))
        spec = EnvSpec()
        call("env_pool_spec", self._handle, ref(spec))
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
        self._action_shape = () if self.action_dtype == np.int32 else (self.num_actions,)

    def __del__(self) -> None:
        if self._handle:
            core().neuroevo_env_pool_free(self._handle)

    def reset(
        self,
        slots: Sequence[int],
        seeds: Sequence[int],
        max_frames: Sequence[int],
        episodes: Sequence[int] | None = None,
        normalisers: Sequence[int] | None = None,
    ) -> None:
        """Starts episodes; seeds [K], max_frames [K] in emulator frames (0: the family's own limit).

        episodes: [K], numbers by which take_ended() tells of them. normalisers: [K], numbers given to set_normaliser().
        -1 stands for none.
        """
        slots = indices("slots", slots)
        seeds = shaped("seeds", seeds, np.uint64, slots.shape)
        max_frames = shaped("max_frames", max_frames, np.int64, slots.shape)
        if episodes is not None:
            episodes = shaped("episodes", episodes, np.int64, slots.shape)
        if normalisers is not None:
            normalisers = shaped("normalisers", normalisers, np.int64, slots.shape)
        call("env_reset", self._handle, *sized(slots), seeds, max_frames, episodes, normalisers)

    def actions(self, outputs: np.ndarray) -> np.ndarray:
        """What step() takes, from networks' outputs [K, W] as custom_ops/envs/actions.h has it: int32 [K], or float32
        [K, num_actions]."""
        outputs = np.ascontiguousarray(outputs, np.float32)
        if outputs.ndim != 2:
            raise ValueError(f"outputs has shape {list(outputs.shape)}, expected [K, W]")
        actions = np.zeros((len(outputs), *self._action_shape), self.action_dtype)
        call("env_actions", self._handle, outputs, i64(len(outputs)), i64(outputs.shape[1]), actions)
        return actions

    def step(self, slots: Sequence[int], actions: Sequence) -> tuple[np.ndarray, np.ndarray]:
        """Steps; actions [K] or [K, num_actions]. Returns rewards float64 [K] and dones bool [K].

        An action that is not finite ends its slot's episode, with reward 0 and a fault.
        """
        slots = indices("slots", slots)
        actions = shaped("actions", actions, self.action_dtype, (len(slots), *self._action_shape))
        rewards, dones = np.zeros(len(slots)), np.zeros(len(slots), bool)
        call("env_step", self._handle, *sized(slots), actions, rewards, dones)
        return rewards, dones

    def observe(self, slots: Sequence[int]) -> np.ndarray:
        """Observations [K, *observation_shape]."""
        return self._copy_out("env_observe", slots, self.observation_shape, self.observation_dtype)

    def observe_normalised(self, slots: Sequence[int]) -> np.ndarray:
        """Observations as float32 [K, *observation_shape], normalised where the slot's episode has a normaliser: then
        (observation - mean) / std, within [-5, 5], and the observation counts in the episode's moments."""
        return self._copy_out("env_observe_normalised", slots, self.observation_shape, np.float32)

    def set_normaliser(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Makes a normaliser known: mean, std [n] of the n values of an observation. A number never changes its values.

        Only for observations of floats.
        """
        mean, std = np.ascontiguousarray(mean, np.float64), np.ascontiguousarray(std, np.float64)
        if mean.ndim != 1:
            raise ValueError(f"mean has shape {list(mean.shape)}, expected [n]")
        std = shaped("std", std, np.float64, mean.shape)
        call("env_set_normaliser", self._handle, i64(number), mean, std, i64(len(mean)))

    def drop_normalisers(self, numbers: Sequence[int]) -> None:
        """Forgets normalisers; episodes that have begun with one keep it."""
        call("env_drop_normalisers", self._handle, *sized(indices("numbers", numbers)))

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
        """Why the slot's episode was broken off: an action was not finite or its simulation failed; "" where not."""
        text = ctypes.c_char_p()
        call("env_fault", self._handle, i64(slot), ref(text))
        return text.value.decode()

    def take_ended(self) -> list[tuple[int, str, np.ndarray]]:
        """Number, fault and moments of each numbered episode that ended since the last call with a fault or normaliser.

        moments: float64 [1 + 2n] of the observations that observe_normalised() showed: count, sums, sums of squares; 0
        where the episode had no normaliser; [0] if the pool never had one.
        """
        ended = Ended()
        call("env_take_ended", self._handle, ref(ended))
        count, size = ended.count, ended.moments_size
        moments = np.array(ended.moments[: count * size], np.float64).reshape(count, size)
        faults = [fault.decode() for fault in ended.faults[:count]]
        return list(zip(ended.episodes[:count], faults, moments, strict=True))

    def _copy_out(self, function: str, slots: Sequence[int], shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        slots = indices("slots", slots)
        out = np.zeros((len(slots), *shape), dtype)
        call(function, self._handle, *sized(slots), out)
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
        """thetas [K, max D] into the rows [K]."""
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
        than of observation_dtype."""
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
        """Of a prepared row's vbn layers, as custom_ops/population/network.h orders them: float32 [S]."""
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
    """Plays episodes with the lane runner; every genome is made from its chain. Outcomes are in order.

    networks: functions (observation line, num_actions) -> layer list, whose outputs EnvPool.actions() can take.
    """
    pool = EnvPool(env, lanes * slots)
    normalisers = {episode.normaliser for episode in episodes} - {None}
    for each in normalisers:
        pool.set_normaliser(each.number, each.mean, each.std)
    observation = input_line(pool.observation_dtype.name, pool.observation_shape)
    texts = [to_text(net(observation, pool.num_actions)) for net in networks]
    population = Population(texts, lanes * slots, backend, dtype, float_rows=0)
    genomes = list(dict.fromkeys(episode.genome for episode in episodes))
    index = {genome: i for i, genome in enumerate(genomes)}
    mutations = [mutation for genome in genomes for mutation in genome.chain]
    arrays = {
        "genome_of": array([index[episode.genome] for episode in episodes], np.int64),
        "seeds": array([episode.seed for episode in episodes], np.uint64),
        "max_frames": array([episode.max_steps * pool.frame_skip for episode in episodes], np.int64),
        "normalisers": array([-1 if e.normaliser is None else e.normaliser.number for e in episodes], np.int64),
        "networks": array([genome.network for genome in genomes], np.int32),
        "sources": np.full(len(genomes), -1, np.int64),
        "base_seeds": array([genome.base for genome in genomes], np.uint64),
        "chain_splits": np.cumsum([0, *(len(genome.chain) for genome in genomes)], dtype=np.int64),
        "chain_seeds": array([seed for seed, _ in mutations], np.uint64),
        "chain_scales": array([scale for _, scale in mutations], np.float32),
    }
    pointers = {name: array.ctypes.data for name, array in arrays.items()}
    request = Episodes(episodes=len(episodes), genomes=len(genomes), **pointers)
    returns, steps = np.zeros(len(episodes)), np.zeros(len(episodes), np.int64)
    handles = pool._handle, population._handle
    call("run_lanes", *handles, i64(lanes), i64(slots), i64(0), ref(request), returns, steps)
    batch = Batch(len(episodes))
    for ended in pool.take_ended():
        batch.book_end(*ended)
    batch.book(np.arange(len(episodes)), returns, steps)
    return batch.outcomes
