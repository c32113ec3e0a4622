"""Lanes of slots that play episodes: environments, population, and the queue that feeds them.

Each lane has a thread of its own that steps its slots until the queue is closed, in the native core or as a TensorFlow
graph (engine.py). While one lane's networks are evaluated, the other lanes' emulators run: all lanes share one pool of
worker threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import EpisodeResults
from neuroevo.core.errors import NativeArgumentError, UserError
from neuroevo.core.problems import ConfigError
from neuroevo.native import library
from neuroevo.native.submission import Submission
from neuroevo.networks.architectures import network_text
from neuroevo.networks.network import Network, check
from neuroevo.rollout.engine import Engine, EnginePool, EnginePopulation, EngineRollout, NativeEngine
from neuroevo.rollout.reference_batch import draw_reference_batch

_Made = TypeVar("_Made")
_PARENT_BYTES = 600e6  # 37 LargeModels, where the paper's GA has 20 parents
_MAX_PARENT_ROWS = 2048
_CHAIN_PIECE = 200  # mutations in one call, which nothing interrupts: about half a second of LargeModel on 2 cores


class Pipeline:
    """An env pool, a population and an episode queue, and one thread per lane that runs the loop over them.

    Args:
        env: What environments are made of.
        networks: Networks of one dtype, which genomes refer to by index.
        lanes: Number of lanes.
        slots: Slots of each lane.
        parent_rows: Rows [0, parent_rows) of the population are the caller's; by default as many as 600 MB or a quarter
            of the free memory hold, at least 2.
        backend: "cpu", "reference", or "cuda" for a GPU.
        engine: What runs the lanes; by default the native core.
        behavior: What to record of each episode; None: nothing.
        rank: Not 0: the lanes' rows are members of this rank, whose centers are in the caller's rows; what else is
            played has a row of the caller's, too.
        reference_batch: Observations [B, ...] from which vbn layers take their statistics; by default of random play
            from seed 0. Networks without such layers need none.

    Attributes:
        pool: The environments; None after close().
        population: The networks' weights, likewise.
        total_steps: Of all lanes so far, unfinished episodes included; as of the last results().

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
        engine: Engine | None = None,
        behavior: Behavior | None = None,
        rank: int = 0,
        reference_batch: np.ndarray | None = None,
    ):
        dtypes = {network.dtype for network in networks}
        if len(dtypes) > 1:
            raise UserError(f"networks are evaluated in {' and '.join(sorted(dtypes))}, expected one of these for all")
        (dtype,) = dtypes
        if rank and dtype != "float32":
            raise UserError(f"networks are evaluated in {dtype}, expected float32 for mutations of rank {rank}")
        self._engine: Engine = NativeEngine() if engine is None else engine
        self._layout = lanes, slots
        pool = _done(env.name, lambda: self._engine.make_env_pool(env, lanes * slots))
        self.pool: EnginePool | None = pool
        pixels = pool.observation_dtype == np.uint8
        self.observation_dtype = np.dtype(np.uint8 if pixels else np.float32)  # that networks see
        self.observation_shape = pool.observation_shape
        self.num_actions, self.frame_skip = pool.num_actions, pool.frame_skip
        if behavior is not None:
            every, samples = behavior.every, behavior.samples
            _done(f"behaviors of {env.name}", lambda: pool.record_behaviors(every, samples), "recorded")
        self.behavior_dtype, self.behavior_size = pool.behavior_dtype, pool.behavior_size
        self._check_networks(networks, env.name)
        continuous = pool.action_dtype == np.float32
        for bins in {network.action_bins for network in networks if continuous}:
            # Bins need bounds, which an action may not have.
            none = np.zeros((0, self.num_actions * (bins or 1)), np.float32)
            _done("the networks' actions", functools.partial(pool.actions, none))
        shown = self.observation_dtype.name, self.observation_shape, self.num_actions
        layers = [functools.partial(network.lines, continuous_actions=continuous) for network in networks]
        self.network_texts = [network_text(each, *shown) for each in layers]
        prepares = any(network.needs_reference for network in networks)
        if prepares:
            reference_batch = self._checked_reference(
                draw_reference_batch(env, 0) if reference_batch is None else reference_batch
            )
        make = functools.partial(self._engine.make_population, self.network_texts, backend=backend, dtype=dtype)
        self.dimensions = _done("the population", lambda: make(1)).dimensions
        self.parent_rows = parent_rows or _default_parent_rows(max(self.dimensions), dtype)
        # The lanes' rows, which nothing is bred from, need no float32 weights beside their integers.
        rows = self.parent_rows + lanes * slots
        population = _done("the population", lambda: make(rows, float_rows=self.parent_rows, rank=rank))
        if prepares and reference_batch is not None:
            population.set_reference(reference_batch)
        self.population: EnginePopulation | None = population
        self._rollout: EngineRollout | None = None
        self._prepares = prepares
        self.total_steps = 0

    def start(self) -> None:
        """Starts the lanes. They wait, without using a core, until episodes are submitted."""
        pool, population = self._parts()
        self._rollout = self._engine.start(pool, population, *self._layout, first_row=self.parent_rows)

    def submit(self, submission: Submission, priority: int = 0) -> None:
        """Appends episodes to the queue.

        Args:
            submission: The episodes, with ids that none has had before; genomes start from the caller's rows.
            priority: Episodes of a lower number are played first.

        Raises:
            NativeError: Something in them is not possible.
            BaseException: What stopped a lane, if something did.
            RuntimeError: The pipeline is closed.
        """
        self._lanes().submit(submission, priority)

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
        lanes = self._lanes()
        results = lanes.results(count, seconds)
        self.total_steps = lanes.total_steps
        return results

    def set_normalizer(self, number: int, mean: np.ndarray, std: np.ndarray) -> None:
        """Makes a normalizer known to the environments under a number; mean, std float64 [n]."""
        self._parts()[0].set_normalizer(number, mean, std)

    def drop_normalizers(self, numbers: Sequence[int]) -> None:
        """Forgets normalizers; episodes that play with one keep it."""
        self._parts()[0].drop_normalizers(numbers)

    def init_row(self, row: int, network: int, seed: int) -> None:
        """Fills one of the caller's rows with initial weights."""
        self._parts()[1].init([row], [network], [seed])

    def assign_row(self, row: int, network: int, vector: np.ndarray) -> None:
        """Fills one of the caller's rows with given weights, float32 [D]."""
        theta = np.zeros((1, max(self.dimensions)), np.float32)
        theta[0, : len(vector)] = vector
        self._parts()[1].assign([row], [network], theta)

    def perturb_row(self, dst: int, src: int, chain: Sequence[tuple[int, float]]) -> None:
        """Theta of dst = theta of src and then the chain's mutations (at least one); dst may be src.

        Signals are handled between pieces of the chain; an exception then leaves dst with some of the mutations.
        """
        for start in range(0, len(chain), _CHAIN_PIECE):
            piece = chain[start : start + _CHAIN_PIECE]
            sources = [dst if start else src] + [dst] * (len(piece) - 1)
            seeds, scales = [seed for seed, _ in piece], [scale for _, scale in piece]
            self._parts()[1].perturb([dst] * len(piece), sources, seeds, scales)

    def prepare_rows(self, rows: Sequence[int]) -> None:
        """Has the vbn layers of rows that are to be played in place take their statistics, where they have not yet."""
        _, population = self._parts()
        if self._prepares:
            population.prepare(rows)

    def close(self) -> None:
        """Ends the lanes within a step, dropping what they play, and frees the native objects."""
        if self._rollout is not None:
            self._rollout.close()
        self._rollout = self.population = self.pool = None

    def _checked_reference(self, reference_batch: np.ndarray) -> np.ndarray:
        """UserError: it is not a batch of what the networks see."""
        dtype, shape = self.observation_dtype, self.observation_shape
        if reference_batch.dtype != dtype or reference_batch.shape[1:] != shape or not len(reference_batch):
            raise UserError(
                f"the reference batch has dtype {reference_batch.dtype} and shape {list(reference_batch.shape)}, "
                f"expected {dtype} and {['B', *shape]} as the environment's observations have"
            )
        return reference_batch

    def _check_networks(self, networks: Sequence[Network], env: str) -> None:
        """UserError: one cannot see what the environment shows, which of some is known only once they are made."""
        shape, pixels = self.observation_shape, self.observation_dtype == np.uint8
        images = None if len(shape) == 3 and not pixels else pixels  # images of floats are for any network
        for problem in (problem for each in networks for problem in check(each, env, images, shape=shape)):
            raise ConfigError([problem])

    def _parts(self) -> tuple[EnginePool, EnginePopulation]:
        """RuntimeError: close() was called."""
        if self.pool is None or self.population is None:
            raise RuntimeError("the pipeline is closed: an evaluator plays nothing after close() or a failure")
        return self.pool, self.population

    def _lanes(self) -> EngineRollout:
        """RuntimeError: close() was called, or start() was not."""
        self._parts()
        if self._rollout is None:
            raise RuntimeError("the pipeline has not been started")
        return self._rollout


def _done(what: str, do: Callable[[], _Made], done: str = "made") -> _Made:
    """What `do` returns. UserError: the core's words on why it cannot be, where it was asked for what is not valid."""
    try:
        return do()
    except NativeArgumentError as error:
        raise UserError(f"{what} cannot be {done}: {error}") from None


def _default_parent_rows(dimension: int, dtype: str) -> int:
    weight_bytes = 4 if dtype == "float32" else 5  # a parent's float32 weights stay beside its integers
    fitting = int(min(_PARENT_BYTES, library.free_bytes() / 4) / (weight_bytes * dimension))
    return max(2, min(_MAX_PARENT_ROWS, fitting))
