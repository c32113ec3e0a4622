"""Lanes of slots that play episodes: the TensorFlow graph loop, its threads, and the queue that feeds it.

A lane is one graph loop (observe, forward, actions, step, book, refill) that runs until the queue is closed, without
any Python per step. While one lane's networks are evaluated, the other lanes' emulators run: all lanes share one pool
of worker threads.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import tensorflow as tf

from neuroevo.envs import EnvRecipe
from neuroevo.errors import UserError
from neuroevo.networks import Network, input_line, to_text
from neuroevo.ops import end_stuck_environments, tf_ops

_PARENT_BYTES = 600e6  # 37 LargeModels, where the paper's GA has 20 parents
_MAX_PARENT_ROWS = 2048
_PATIENCE = 2.0  # seconds that a step may take once the pipeline is closed, if a process can be ended for it
_CHAIN_PIECE = 200  # mutations in one op, which nothing interrupts: about half a second of LargeModel on 2 cores


class Pipeline:
    """An env pool, a population and an episode queue, and one thread per lane that runs the loop over them.

    env: recipe of the environment. networks: of one dtype; genomes refer to them by index. lanes, slots: number of
    lanes, slots of each. parent_rows: rows [0, parent_rows) of the population are the caller's; by default as many as
    600 MB hold, at least 2. backend: "cpu", "reference", or "cuda" for a GPU. population_device: TensorFlow's device
    that the population's ops are placed on; on "/gpu:0", with "cuda", observations and outputs are tensors of the GPU,
    and rows are in TensorFlow's part of its memory.
    UserError: there is no such mode of the environment, a network cannot be evaluated in integers, or the like.
    """

    def __init__(
        self,
        env: EnvRecipe,
        networks: Sequence[Network],
        *,
        lanes: int,
        slots: int,
        parent_rows: int | None = None,
        backend: str = "cpu",
        population_device: str = "/cpu:0",
    ):
        dtypes = {network.dtype for network in networks}
        if len(dtypes) > 1:
            raise UserError(f"networks are evaluated in {' and '.join(sorted(dtypes))}, expected one of these for all")
        (dtype,) = dtypes
        ops = tf_ops()
        _let_lanes_run_at_once(lanes)
        self._population_device = population_device
        with tf.device("/cpu:0"):
            self.env_pool = make_env_pool(env, lanes * slots)
            spec = ops.env_pool_spec(self.env_pool)
            observation_dtype = tf.as_dtype(spec.observation_dtype.numpy().decode())
            self.observation_dtype = tf.float32 if observation_dtype.is_floating else observation_dtype
            self._action_dtype = tf.as_dtype(spec.action_dtype.numpy().decode())
            self.observation_shape = tuple(spec.observation_shape.numpy().tolist())
            self.num_actions = int(spec.num_actions)
            self.frame_skip = int(spec.frame_skip)
            observation = input_line(self.observation_dtype.name, self.observation_shape)
            vector = self._action_dtype == tf.float32
            for bins in {network.action_bins for network in networks if vector}:
                self._check_outputs(self.num_actions * (bins or 1))
            layers = [network.layers(observation, self.num_actions, vector) for network in networks]
            self.network_texts = [to_text(each) for each in layers]
            networks_alone = self._make_population(backend, dtype, rows=1)
            with tf.device(population_device):
                self.dimensions = ops.population_dimensions(networks_alone).numpy().tolist()
            self.parent_rows = parent_rows or _default_parent_rows(max(self.dimensions), dtype)
            # The lanes' rows, which nothing is bred from, need no float32 weights beside their integers.
            rows = self.parent_rows + lanes * slots
            self.population = self._make_population(backend, dtype, rows=rows, float_rows=self.parent_rows)
            self.queue = ops.episode_queue_make(lanes=lanes, slots_per_lane=slots, first_row=self.parent_rows)
        self.total_steps = 0  # of all lanes so far, unfinished episodes included; as of the last results()
        self._lanes = lanes
        self._failure: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Starts the lanes. They wait, without using a core, until episodes are submitted."""
        played = self.observation_dtype, self.observation_shape, self._action_dtype
        run = _lane_function(*played, self._population_device)
        for lane in range(self._lanes):
            thread = threading.Thread(target=self._run_lane, args=(run, lane), name=f"lane {lane}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def submit(
        self,
        episode_ids: Sequence[int],
        episode_genomes: Sequence[int],
        episode_seeds: Sequence[int],
        episode_max_frames: Sequence[int],
        genome_ids: Sequence[int],
        genome_networks: Sequence[int],
        genome_sources: Sequence[int],
        genome_seeds: Sequence[int],
        chains: Sequence[Sequence[tuple[int, float]]],
        priority: int = 0,
        episode_normalisers: Sequence[int] | None = None,
    ) -> None:
        """Appends episodes to the queue, as the EpisodeQueueSubmit op describes; chains holds one per genome.

        episode_normalisers: numbers given to set_normaliser(), or -1; by default all -1.
        RuntimeError: the pipeline is closed.
        """
        self._check_lanes()
        mutations = [mutation for chain in chains for mutation in chain]
        normalisers = [-1] * len(episode_ids) if episode_normalisers is None else episode_normalisers
        with tf.device("/cpu:0"):
            tf_ops().episode_queue_submit(
                self.queue,
                _int64(episode_ids),
                _int64(episode_genomes),
                _int64(episode_seeds),
                _int64(episode_max_frames),
                _int64(normalisers),
                _int64(genome_ids),
                np.asarray(genome_networks, np.int32),
                _int64(genome_sources),
                _int64(genome_seeds),
                np.concatenate([[0], np.cumsum([len(chain) for chain in chains], dtype=np.int64)]).astype(np.int64),
                _int64([seed for seed, _ in mutations]),
                np.asarray([scale for _, scale in mutations], np.float32),
                _int64(priority),
            )

    def results(self, count: int = 0, seconds: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids, returns and steps of the episodes that have ended since the last call.

        Waits until there are `count` of them or the time is over; no signal is handled meanwhile. Raises what stopped a
        lane, if something did, and RuntimeError when the pipeline is closed.
        """
        self._check_lanes()
        with tf.device("/cpu:0"):
            results = tf_ops().episode_queue_results(self.queue, _int64(count), _int64(1000 * seconds))
            *outcomes, total_steps = (out.numpy() for out in results)
        self.total_steps = int(total_steps)
        return tuple(outcomes)

    def take_ended(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the episodes with a fault or a normaliser that have ended since the last call: ids int64 [E], why they
        failed as bytes [E], empty where they did not, and moments float64 [E, 1 + 2n], [E, 0] without normalisers.

        Of an episode that results() has told of, it has been told too.
        """
        self._check_open()
        with tf.device("/cpu:0"):
            return tuple(out.numpy() for out in tf_ops().env_take_ended(self.env_pool))

    def set_normaliser(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Makes a normaliser known to the environments under a number; mean, std float64 [n]."""
        self._check_open()
        with tf.device("/cpu:0"):
            tf_ops().env_set_normaliser(self.env_pool, _int64(number), mean, std)

    def drop_normalisers(self, numbers: Sequence[int]) -> None:
        """Forgets normalisers; episodes that play with one keep it."""
        self._check_open()
        with tf.device("/cpu:0"):
            tf_ops().env_drop_normalisers(self.env_pool, _int64(numbers))

    def init_row(self, row: int, network: int, seed: int) -> None:
        """Fills one of the caller's rows with initial weights."""
        self._check_open()
        with tf.device(self._population_device):
            tf_ops().population_init(self.population, [row], [network], _int64([seed]))

    def perturb_row(self, dst: int, src: int, chain: Sequence[tuple[int, float]]) -> None:
        """theta of dst = theta of src and then the chain's mutations (at least one); dst may be src.

        Signals are handled between pieces of the chain; an exception then leaves dst with some of the mutations.
        """
        self._check_open()
        for start in range(0, len(chain), _CHAIN_PIECE):
            piece = chain[start : start + _CHAIN_PIECE]
            with tf.device(self._population_device):
                tf_ops().population_perturb(
                    self.population,
                    _int64([dst] * len(piece)),
                    _int64([dst if start else src] + [dst] * (len(piece) - 1)),
                    _int64([seed for seed, _ in piece]),
                    np.asarray([scale for _, scale in piece], np.float32),
                )

    def close(self) -> None:
        """Ends the lanes within a step, dropping what they play, and frees the native objects."""
        if self.queue is None:
            return
        with tf.device("/cpu:0"):
            tf_ops().episode_queue_close(self.queue)
        for thread in self._threads:
            thread.join(_PATIENCE)
            while thread.is_alive():
                end_stuck_environments(_PATIENCE)
                thread.join(_PATIENCE)
        self._threads = []
        self.queue = self.population = self.env_pool = None

    def _make_population(self, backend: str, dtype: str, rows: int, float_rows: int = -1) -> tf.Tensor:
        kind = {"networks": self.network_texts, "backend": backend, "dtype": dtype}
        with tf.device(self._population_device):
            return _in_core_words(
                "the population", lambda: tf_ops().population_make(**kind, rows=rows, float_rows=float_rows)
            )

    def _check_outputs(self, width: int) -> None:
        """UserError: networks of so many outputs cannot act, since bins need bounds and the action has none."""
        none = tf.zeros([0, width])
        act = functools.partial(tf_ops().env_actions, self.env_pool, none, T=self._action_dtype)
        _in_core_words("the networks' actions", act)

    def _check_lanes(self) -> None:
        """Raises what stopped a lane, which has closed the queue for the others; RuntimeError: close() was called."""
        self._check_open()
        if self._failure is not None:
            raise self._failure

    def _check_open(self) -> None:
        if self.queue is None:
            raise RuntimeError("the pipeline is closed: an evaluator plays nothing after close() or a failure")

    def _run_lane(self, run: tf.types.experimental.ConcreteFunction, lane: int) -> None:
        try:
            with tf.device("/cpu:0"):
                run(tf.constant(lane, tf.int64), self.env_pool, self.population, self.queue)
        except BaseException as failure:  # reaches the caller of results()
            self._failure = self._failure or failure
            with tf.device("/cpu:0"):
                tf_ops().episode_queue_close(self.queue)


def _let_lanes_run_at_once(lanes: int) -> None:
    """Gives TensorFlow a thread for each lane, if it has fewer: some lanes would wait until others have no episodes."""
    threading_config = tf.config.threading
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if lanes > (threading_config.get_inter_op_parallelism_threads() or cores):
        with suppress(RuntimeError):  # it is at work already, and keeps those that it has
            threading_config.set_inter_op_parallelism_threads(lanes)


def make_env_pool(env: EnvRecipe, slots: int) -> tf.Tensor:
    """The handle of a pool. UserError: the environment has no such option, mode or the like."""
    make = tf_ops().env_pool_make
    return _in_core_words(env.name, lambda: make(family=env.family, options=list(env.options), slots=slots))


def _in_core_words(what: str, make: Callable[[], tf.Tensor]) -> tf.Tensor:
    """What `make` makes. UserError: the core's words, without what TensorFlow puts around them, on why it cannot be."""
    try:
        return make()
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as error:
        words = re.sub(r"^\{\{.*?\}\} | \[Op:\w+\].*$", "", error.message)
        raise UserError(f"{what} cannot be made: {words}") from None


def _default_parent_rows(dimension: int, dtype: str) -> int:
    weight_bytes = 4 if dtype == "float32" else 5  # a parent's float32 weights stay beside its integers
    return max(2, min(_MAX_PARENT_ROWS, int(_PARENT_BYTES / (weight_bytes * dimension))))


def _int64(values: Sequence[int] | float) -> np.ndarray:
    return np.asarray(values, np.int64)


@functools.cache
def _lane_function(
    dtype: tf.DType, shape: tuple[int, ...], action_dtype: tf.DType, population_device: str
) -> tf.types.experimental.ConcreteFunction:
    """The graph that plays one lane until the queue is closed, for observations and actions of these dtypes.

    Observations are shown to networks as uint8, or normalised as float32.

    The handles are arguments: a graph that captured them would keep the rows in memory until Python's garbage collector
    finds it.
    """
    ops = tf_ops()
    vector, scalar, handle = tf.TensorShape([None]), tf.TensorShape([]), tf.TensorSpec([], tf.resource)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int64), handle, handle, handle])
    def run(lane: tf.Tensor, env_pool: tf.Tensor, population: tf.Tensor, queue: tf.Tensor) -> tf.Tensor:
        def refill() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            take = ops.episode_queue_take(queue, lane)
            with tf.device(population_device):
                init = ops.population_init(population, take.init_rows, take.init_networks, take.init_seeds)
                with tf.control_dependencies([init]):
                    perturb = ops.population_perturb(
                        population, take.perturb_dst, take.perturb_src, take.perturb_seeds, take.perturb_scales
                    )
            episodes = take.slots, take.seeds, take.max_frames, take.episodes, take.normalisers
            reset = ops.env_reset(env_pool, *episodes)
            with tf.control_dependencies([perturb, reset]):
                return tf.identity(take.live_slots), tf.identity(take.live_rows), tf.identity(take.closed)

        def step(slots: tf.Tensor, rows: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            if dtype == tf.float32:
                observations = ops.env_normalised_observation(env_pool, slots, shape=shape)
            else:
                observations = ops.env_observation(env_pool, slots, dtype=dtype, shape=shape)
            with tf.device(population_device):
                outputs = ops.population_forward(population, rows, observations)
            actions = ops.env_actions(env_pool, outputs, T=action_dtype)
            rewards, dones = ops.env_step(env_pool, slots, actions)
            put = ops.episode_queue_put(queue, lane, slots, rewards, dones)
            return put.live_slots, put.live_rows, put.refill

        def play(slots: tf.Tensor, rows: tf.Tensor, closed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            """Steps until slots want episodes. A loop of its own: TensorFlow visits every op of a branch not taken."""
            *_, ended = tf.while_loop(
                lambda slots, rows, refill: tf.logical_not(refill),
                step,
                (slots, rows, closed),
                shape_invariants=(vector, vector, scalar),
                parallel_iterations=1,
            )
            with tf.control_dependencies([ended]):
                return refill()

        with tf.device("/cpu:0"):
            *_, running = tf.while_loop(
                lambda slots, rows, closed: tf.logical_not(closed),
                play,
                refill(),
                shape_invariants=(vector, vector, scalar),
                parallel_iterations=1,
            )
            return running

    return run.get_concrete_function()
