"""Lanes of slots that play episodes: environments, population, and the queue that feeds them.

A lane is one graph loop (lane_graph.py) that runs in a thread of its own (lane_threads.py) until the queue is closed.
While one lane's networks are evaluated, the other lanes' emulators run: all lanes share one pool of worker threads.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from neuroevo.core.behavior import Behavior
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import EpisodeResults
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError
from neuroevo.native.submission import Submission
from neuroevo.networks.architectures import Network, check, network_text
from neuroevo.rollout.lane_graph import lane_function
from neuroevo.rollout.lane_threads import LaneThreads
from neuroevo.rollout.reference_batch import draw_reference_batch
from neuroevo.rollout.tf_ops import core_words, in_core_words, load_ops
from neuroevo.system.signals import deferred_signals

_PARENT_BYTES = 600e6  # 37 LargeModels, where the paper's GA has 20 parents
_MAX_PARENT_ROWS = 2048
_CHAIN_PIECE = 200  # mutations in one op, which nothing interrupts: about half a second of LargeModel on 2 cores


class Pipeline:
    """An env pool, a population and an episode queue, and one thread per lane that runs the loop over them.

    Args:
        env: What environments are made of.
        networks: Networks of one dtype, which genomes refer to by index.
        lanes: Number of lanes.
        slots: Slots of each lane.
        parent_rows: Rows [0, parent_rows) of the population are the caller's; by default as many as 600 MB hold, at
            least 2.
        backend: "cpu", "reference", or "cuda" for a GPU.
        population_device: TensorFlow's device of the population's ops. On "/gpu:0", with "cuda", observations and
            outputs are tensors of the GPU, and rows are in TensorFlow's part of its memory.
        behavior: What to record of each episode; None: nothing.
        reference_batch: Observations [B, ...] from which vbn layers take their statistics; by default of random play
            from seed 0. Networks without such layers need none.

    Raises:
        UserError: There is no such mode of the environment, a network cannot be evaluated in integers, or the like.
    """

    def __init__(
        self,
        env: EnvSpec,
        networks: Sequence[Network],
        *,
        lanes: int,
        slots: int,
        parent_rows: int | None = None,
        backend: str = "cpu",
        population_device: str = "/cpu:0",
        behavior: Behavior | None = None,
        reference_batch: np.ndarray | None = None,
    ):
        dtypes = {network.dtype for network in networks}
        if len(dtypes) > 1:
            raise UserError(f"networks are evaluated in {' and '.join(sorted(dtypes))}, expected one of these for all")
        (dtype,) = dtypes
        ops = load_ops()
        self._threads = LaneThreads(lanes)
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
            self.behavior_dtype = np.dtype(spec.behavior_dtype.numpy().decode())
            self.behavior_size = 0  # B, numbers recorded of an episode
            if behavior is not None:
                self._record(behavior, env.name, spec.behavior_shape.numpy())
            self._check_networks(networks, env.name)
            continuous = self._action_dtype == tf.float32
            for bins in {network.action_bins for network in networks if continuous}:
                self._check_outputs(self.num_actions * (bins or 1))
            shown = self.observation_dtype.name, self.observation_shape, self.num_actions
            layers = [functools.partial(network.layers, continuous_actions=continuous) for network in networks]
            self.network_texts = [network_text(each, *shown) for each in layers]
            self._prepares = any(network.needs_reference for network in networks)
            if self._prepares:
                reference_batch = self._checked_reference(
                    draw_reference_batch(env, 0) if reference_batch is None else reference_batch
                )
            networks_alone = self._make_population(backend, dtype, rows=1)
            with tf.device(population_device):
                self.dimensions = ops.population_dimensions(networks_alone).numpy().tolist()
            self.parent_rows = parent_rows or _default_parent_rows(max(self.dimensions), dtype)
            # The lanes' rows, which nothing is bred from, need no float32 weights beside their integers.
            rows = self.parent_rows + lanes * slots
            self.population = self._make_population(backend, dtype, rows=rows, float_rows=self.parent_rows)
            if self._prepares:
                with tf.device(population_device):
                    ops.population_set_reference(self.population, reference_batch)
            self.queue = ops.episode_queue_make(lanes=lanes, slots_per_lane=slots, first_row=self.parent_rows)
        self.total_steps = 0  # of all lanes so far, unfinished episodes included; as of the last results()

    def start(self) -> None:
        """Starts the lanes. They wait, without using a core, until episodes are submitted."""
        played = self.observation_dtype, self.observation_shape, self._action_dtype
        with deferred_signals():  # TensorFlow loses some of what is raised while it traces, or makes other errors of it
            run = lane_function(*played, self._population_device, self._prepares)
        self._threads.start(run, self.env_pool, self.population, self.queue)

    def submit(self, submission: Submission, priority: int = 0) -> None:
        """Appends episodes to the queue.

        Args:
            submission: The episodes, with ids that none has had before; genomes start from the caller's rows.
            priority: Episodes of a lower number are played first.

        Raises:
            tf.errors.OpError: Something in them is not possible.
            RuntimeError: The pipeline is closed.
        """
        self._check_lanes()
        with tf.device("/cpu:0"):
            load_ops().episode_queue_submit(self.queue, **submission.arrays(), priority=_int64(priority))

    def results(self, count: int = 0, seconds: float = 0.0) -> EpisodeResults:
        """The results of the episodes that have ended since the last call.

        Waits until there are `count` of them or the time is over; no signal is handled meanwhile.

        Args:
            count: How many to wait for.
            seconds: How long to wait.

        Returns:
            Results in the order in which the episodes ended.

        Raises:
            BaseException: What stopped a lane, if something did.
            RuntimeError: The pipeline is closed.
        """
        self._check_lanes()
        with tf.device("/cpu:0"):
            results = load_ops().episode_queue_results(self.queue, _int64(count), _int64(1000 * seconds))
            ids, returns, steps, failures, sums, behaviors, total_steps = (out.numpy() for out in results)
        self.total_steps = int(total_steps)
        behaviors = behaviors.view(self.behavior_dtype).reshape(len(ids), -1 if behaviors.size else 0)
        return EpisodeResults(ids, returns, steps, [failure.decode() for failure in failures], sums, behaviors)

    def set_normalizer(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Makes a normalizer known to the environments under a number; mean, std float64 [n]."""
        self._check_open()
        with tf.device("/cpu:0"):
            load_ops().env_set_normalizer(self.env_pool, _int64(number), mean, std)

    def drop_normalizers(self, numbers: Sequence[int]) -> None:
        """Forgets normalizers; episodes that play with one keep it."""
        self._check_open()
        with tf.device("/cpu:0"):
            load_ops().env_drop_normalizers(self.env_pool, _int64(numbers))

    def init_row(self, row: int, network: int, seed: int) -> None:
        """Fills one of the caller's rows with initial weights."""
        self._check_open()
        with tf.device(self._population_device):
            load_ops().population_init(self.population, [row], [network], _int64([seed]))

    def assign_row(self, row: int, network: int, vector: np.ndarray) -> None:
        """Fills one of the caller's rows with given weights, float32 [D]."""
        self._check_open()
        theta = np.zeros((1, max(self.dimensions)), np.float32)
        theta[0, : len(vector)] = vector
        with tf.device(self._population_device):
            load_ops().population_assign(self.population, [row], [network], theta)

    def perturb_row(self, dst: int, src: int, chain: Sequence[tuple[int, float]]) -> None:
        """Theta of dst = theta of src and then the chain's mutations (at least one); dst may be src.

        Signals are handled between pieces of the chain; an exception then leaves dst with some of the mutations.
        """
        self._check_open()
        for start in range(0, len(chain), _CHAIN_PIECE):
            piece = chain[start : start + _CHAIN_PIECE]
            with tf.device(self._population_device):
                load_ops().population_perturb(
                    self.population,
                    _int64([dst] * len(piece)),
                    _int64([dst if start else src] + [dst] * (len(piece) - 1)),
                    _int64([seed for seed, _ in piece]),
                    np.asarray([scale for _, scale in piece], np.float32),
                )

    def prepare_rows(self, rows: Sequence[int]) -> None:
        """Has the vbn layers of rows that are to be played in place take their statistics, where they have not yet."""
        self._check_open()
        if self._prepares:
            with tf.device(self._population_device):
                load_ops().population_prepare(self.population, _int64(rows))

    def close(self) -> None:
        """Ends the lanes within a step, dropping what they play, and frees the native objects."""
        if self.queue is None:
            return
        with tf.device("/cpu:0"):
            load_ops().episode_queue_close(self.queue)
        self._threads.join()
        self.queue = self.population = self.env_pool = None

    def _make_population(self, backend: str, dtype: str, rows: int, float_rows: int = -1) -> tf.Tensor:
        kind = {"networks": self.network_texts, "backend": backend, "dtype": dtype}
        with tf.device(self._population_device):
            return _in_core_words(
                "the population", lambda: load_ops().population_make(**kind, rows=rows, float_rows=float_rows)
            )

    def _checked_reference(self, reference_batch: np.ndarray) -> np.ndarray:
        """UserError: it is not a batch of what the networks see."""
        dtype, shape = self.observation_dtype.as_numpy_dtype, self.observation_shape
        if reference_batch.dtype != dtype or reference_batch.shape[1:] != shape or not len(reference_batch):
            raise UserError(
                f"the reference batch has dtype {reference_batch.dtype} and shape {list(reference_batch.shape)}, "
                f"expected {np.dtype(dtype)} and {['B', *shape]} as the environment's observations have"
            )
        return reference_batch

    def _check_networks(self, networks: Sequence[Network], env: str) -> None:
        """UserError: one cannot see what the environment shows, which of some is known only once they are made."""
        shape, pixels = self.observation_shape, self.observation_dtype == tf.uint8
        images = None if len(shape) == 3 and not pixels else pixels  # images of floats are for any network
        for problem in (problem for each in networks for problem in check(each, env, images, shape=shape)):
            raise ConfigError([problem])

    def _record(self, behavior: Behavior, env: str, shape: np.ndarray) -> None:
        every, samples = _int64(behavior.every), _int64(behavior.samples)
        record = functools.partial(load_ops().env_record_behaviors, self.env_pool, every, samples)
        _in_core_words(f"behaviors of {env}", record, "recorded")
        self.behavior_size = math.prod(shape.tolist()) * (behavior.samples if behavior.every else 1)

    def _check_outputs(self, width: int) -> None:
        """UserError: such networks cannot act, since bins need bounds and the action has none."""
        none = tf.zeros([0, width])
        act = functools.partial(load_ops().env_actions, self.env_pool, none, T=self._action_dtype)
        _in_core_words("the networks' actions", act)

    def _check_lanes(self) -> None:
        """Raises what stopped a lane, which has closed the queue for the others; RuntimeError: close() was called."""
        self._check_open()
        if self._threads.failure is not None:
            raise self._threads.failure

    def _check_open(self) -> None:
        if self.queue is None:
            raise RuntimeError("the pipeline is closed: an evaluator plays nothing after close() or a failure")


def make_env_pool(env: EnvSpec, slots: int) -> tf.Tensor:
    """The handle of a pool. UserError: the environment has no such option, mode or the like."""
    make = load_ops().env_pool_make
    return _in_core_words(env.name, lambda: make(family=env.family, options=list(env.options), slots=slots))


def _in_core_words(what: str, make: Callable[[], tf.Tensor], done: str = "made") -> tf.Tensor:
    """What `make` makes.

    UserError: the core's words, without what TensorFlow puts around them, on why it cannot be. EnvironmentFailure: an
    environment's process did not start. NativeError: something else went wrong.
    """
    try:
        return make()
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as error:
        raise UserError(f"{what} cannot be {done}: {core_words(error)}") from None
    except tf.errors.OpError as error:
        raise in_core_words(error) from error


def _default_parent_rows(dimension: int, dtype: str) -> int:
    weight_bytes = 4 if dtype == "float32" else 5  # a parent's float32 weights stay beside its integers
    return max(2, min(_MAX_PARENT_ROWS, int(_PARENT_BYTES / (weight_bytes * dimension))))


def _int64(values: Sequence[int] | float) -> np.ndarray:
    return np.asarray(values, np.int64)
