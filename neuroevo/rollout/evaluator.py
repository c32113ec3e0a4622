"""The evaluator of this machine: hands episodes to a pipeline and waits for their outcomes."""

from __future__ import annotations

import atexit
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.closing import Closing
from neuroevo.core.episode import Batch, Episode, EpisodeResults, OnResults, Outcomes
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Progress, Work
from neuroevo.core.genome import Center, Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.problems import ConfigError
from neuroevo.envs import registry
from neuroevo.envs.environment import Environment
from neuroevo.native import library
from neuroevo.native.submission import pack
from neuroevo.native.weights import NativeWeights, vector_of
from neuroevo.networks.network import Network, check, named
from neuroevo.rollout.engine import make_engine
from neuroevo.rollout.parent_cache import ParentRows, needed_rows
from neuroevo.rollout.pipeline import Pipeline

_WAIT_SECONDS = 0.05  # the longest time without a look at signals and at the progress
_GPU_LANES = 3
_GPU_SLOTS_A_THREAD = 4
_LIGHT_SLOTS = 16
_MEMBER_SLOTS = 32
_LARGEST_ROW_BYTES = 30e6  # float32 mlp on Atari, the largest network here as it comes; LargeModel has 16e6


class LocalEvaluator(Closing):
    """Plays episodes on this machine's cores, with networks on them or on its GPU; satisfies the Evaluator protocol.

    Args:
        env: Name of an environment, with env_options, or an environment that was found already.
        network: A network or its name, or several, which genomes refer to by index.
        env_options: Options of the environment, where `env` is a name.
        device: "auto" (the GPU where one can be used), "cpu" or "gpu"; outcomes are the same on both.
        threads: Worker threads; by default one per core.
        lanes: Number of lanes; by default chosen for the threads and the device.
        slots: Slots of each lane; likewise.
        parent_rows: How many genomes to keep as rows of weights, so that their offspring are one perturbation away.
        backend: Of the population, instead of the device's.
        engine: What runs the lanes: "native", "tensorflow", or "auto", which is the native core on the CPU; outcomes
            are the same.
        behavior: What to record of each episode for Outcomes.behaviors; None: nothing.
        rank: Of the last mutation of genomes that have a rank; 0: there are none. Otherwise a genome without a rank,
            and the parent of one with it, takes one of the parent rows.
        reference_batch: Observations [B, ...] from which vbn layers take their statistics; by default the evaluator
            plays 128 itself, at random from seed 0.

    Attributes:
        device: Where networks are evaluated, "cpu" or "gpu".
        behavior_size: How many numbers are recorded of an episode.
        behavior_dtype: Their NumPy dtype.
        network_texts: The networks as the layer lists that the native core reads.

    Raises:
        UserError: A setting makes no sense, the environment has no behavior, or the like.
    """

    def __init__(
        self,
        env: str | Environment,
        network: str | Network | Sequence[str | Network],
        *,
        env_options: Mapping[str, object] | None = None,
        threads: int | None = None,
        lanes: int | None = None,
        slots: int | None = None,
        parent_rows: int | None = None,
        device: str = "auto",
        backend: str | None = None,
        engine: str = "auto",
        behavior: Behavior | None = None,
        rank: int = 0,
        reference_batch: np.ndarray | None = None,
    ):
        self.device = library.choose_device(device)
        environment = env if isinstance(env, Environment) else registry.find(env, env_options)
        networks = [named(each) for each in ([network] if isinstance(network, (str, Network)) else network)]
        _check(networks, environment)
        for what, value in (("threads", threads), ("lanes", lanes), ("slots", slots), ("parent_rows", parent_rows)):
            if value is not None and value < 1:
                raise UserError(f"{what} is {value}, expected at least 1")
        if threads is not None:
            library.set_threads(threads)
        self.threads = library.get_threads()
        light = environment.image_observations is False  # numbers are observed: networks are small, steps short
        default_lanes, default_slots = default_layout(self.threads, self.device, light, members=rank > 0)
        self.lanes, self.slots = lanes or default_lanes, slots or default_slots
        self._pipeline = Pipeline(
            environment.spec,
            networks,
            lanes=self.lanes,
            slots=self.slots,
            parent_rows=parent_rows,
            backend=backend or library.BACKENDS[self.device],
            engine=make_engine(engine, self.device, self.lanes),
            behavior=behavior,
            rank=rank,
            reference_batch=reference_batch,
        )
        self._rank = rank
        self.weights = NativeWeights(self._pipeline.network_texts, self.device)
        self.dimension = max(self._pipeline.dimensions)
        self.num_actions = self._pipeline.num_actions
        self.frame_skip = self._pipeline.frame_skip
        self.behavior_size, self.behavior_dtype = self._pipeline.behavior_size, self._pipeline.behavior_dtype
        self.network_texts = self._pipeline.network_texts
        self.observation_size = math.prod(self._pipeline.observation_shape)
        self._parents = ParentRows(self._pipeline.parent_rows)
        self._playing: dict[int, _Playing] = {}  # by the id of the batch's first episode
        self._next_id = self._next_normalizer = 0
        self._busy_before, self._began = library.busy_seconds(), time.perf_counter()
        self._pipeline.start()
        atexit.register(self.close)

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Plays all episodes and returns their outcomes in order: submit() and wait()."""
        return self.wait(self.submit(episodes), on_progress)

    def submit(
        self,
        episodes: Sequence[Episode],
        priority: int = 0,
        on_results: OnResults | None = None,
        parents: Iterable[Genome] | None = None,
    ) -> Batch:
        """Takes the episodes and returns at once. Those of a lower priority number are played first.

        Args:
            episodes: What to play.
            priority: See the Evaluator protocol.
            on_results: Likewise.
            parents: Genomes whose weights are kept for more of their children, in this submission or later ones; None
                for those that have several children here.

        Returns:
            The batch, which wait() takes.

        Raises:
            EnvironmentFailure: An environment failed. This, what the engine raised, and KeyboardInterrupt leave the
                evaluator closed.
        """
        with self._closed_on_failure():
            batch = Batch(len(episodes), self.behavior_size, self.behavior_dtype, on_results)
            if episodes:
                self._submit(batch, episodes, priority, parents)
            return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = math.inf) -> Outcomes:
        """The outcomes of a batch, in the order of its episodes: when all are over, or what there is after `seconds`.

        Raises as submit() does.
        """
        end = time.perf_counter() + seconds
        with self._closed_on_failure():
            while batch.left and time.perf_counter() < end:
                self.results(batch.left)
                if on_progress is not None:
                    on_progress(batch.over, int(batch.steps.sum()))
        return batch.outcomes

    def results(self, count: int, seconds: float = _WAIT_SECONDS) -> list[tuple[Batch, EpisodeResults]]:
        """Waits until `count` episodes are over or the time is, and books them in their batches, as wait() does.

        Returns:
            What has come of each batch that has something new; ids are indices in the batch.
        """
        results, new = self._pipeline.results(count, seconds), []
        for first, playing in list(self._playing.items()):
            batch = playing.batch
            own = results.of(first, len(batch.steps))
            if len(own):
                batch.book(own)
                new.append((batch, own))
            if not batch.left:
                self._pipeline.drop_normalizers(playing.normalizers)
                del self._playing[first]
        return new

    def work(self) -> Work:
        """What has been done so far."""
        seconds = time.perf_counter() - self._began
        return Work(self._pipeline.total_steps, library.busy_seconds() - self._busy_before, self.threads * seconds)

    def close(self) -> None:
        """Stops the lanes and frees the environments and the population. May be called more than once."""
        atexit.unregister(self.close)
        self._pipeline.close()

    def _submit(
        self, batch: Batch, episodes: Sequence[Episode], priority: int, parents: Iterable[Genome] | None
    ) -> None:
        genomes = list(dict.fromkeys(episode.genome for episode in episodes))
        needed = needed_rows(genomes, self._rank)
        self._bring_parents([*needed, *(_parents_of(genomes) if parents is None else parents)])
        sources = {genome: self._parents.source(genome) for genome in genomes}
        if any(self._parents.row(genome) is None for genome in needed):
            have = self._pipeline.parent_rows
            raise UserError(
                f"{len(needed)} genomes need one of the {have} parent rows each, expected fewer beside those at play"
            )
        self._pipeline.prepare_rows([row for row, chain in sources.values() if row is not None and not chain])
        normalizers = self._set_normalizers(episode.normalizer for episode in episodes)
        submission = pack(
            episodes,
            frame_skip=self.frame_skip,
            dimensions=self._pipeline.dimensions,
            first_id=self._next_id,
            source=sources.__getitem__,
            normalizers=normalizers,
        )
        rows = {row for row, _ in sources.values() if row is not None}
        numbers = [number for number in normalizers.values() if number >= 0]
        self._playing[self._next_id] = _Playing(batch, rows, numbers)
        self._next_id += len(episodes) + len(genomes)
        self._pipeline.submit(submission, priority)

    def _bring_parents(self, parents: Iterable[Genome]) -> None:
        """Makes the weights of these genomes, as far as there are rows."""
        in_use = frozenset().union(*(playing.rows for playing in list(self._playing.values())))
        for fill in self._parents.require(parents, in_use):
            if fill.source is None:
                self._fill_from_base(fill.row, fill.genome)
                if fill.chain:
                    self._pipeline.perturb_row(fill.row, fill.row, fill.chain)
            else:
                self._pipeline.perturb_row(fill.row, fill.source, fill.chain)

    def _fill_from_base(self, row: int, genome: Genome) -> None:
        if isinstance(genome.base, Center):
            vector = vector_of(genome.base, genome.network, self._pipeline.dimensions)
            self._pipeline.assign_row(row, genome.network, vector)
        else:
            self._pipeline.init_row(row, genome.network, genome.base)

    def _set_normalizers(self, normalizers: Iterable[Normalizer | None]) -> dict[Normalizer | None, int]:
        """Makes a batch's normalizers known to the environments; their numbers there, which no other batch has."""
        numbers: dict[Normalizer | None, int] = {}
        for normalizer in dict.fromkeys(normalizers):
            numbers[normalizer] = -1
            if normalizer is not None:
                numbers[normalizer], self._next_normalizer = self._next_normalizer, self._next_normalizer + 1
                self._pipeline.set_normalizer(numbers[normalizer], normalizer.mean, normalizer.std)
        return numbers


def _parents_of(genomes: Iterable[Genome]) -> list[Genome]:
    """The genomes that several of these are children of."""
    children = Counter(genome.parent for genome in genomes if genome.chain)
    return [parent for parent, count in children.items() if parent is not None and count > 1]


def _check(networks: Sequence[Network], env: Environment) -> None:
    """ConfigError: one of the networks cannot play the environment, as far as is known before it is made."""
    for network in networks:
        for problem in check(network, env.given_name, env.image_observations, env.continuous_actions):
            raise ConfigError([problem])


@dataclass(frozen=True)
class _Playing:
    """A batch that is not over, the parents' rows that its episodes start from, and the numbers of its normalizers."""

    batch: Batch
    rows: set[int]
    normalizers: list[int]


def default_layout(threads: int, device: str, light: bool = False, members: bool = False) -> tuple[int, int]:
    """Chooses how many lanes there are, and how many slots each has.

    On the CPU a lane of one slot for each thread: the rows in play are then few enough to stay in the last-level cache
    from step to step (2 LargeModels are 32 MB, and a step reads about half of each), and a lane does all of its work
    itself. On 2 cores more slots were 17 to 40% slower: `python -m experiments.benchmarks --only layout` measures it
    again. Light slots share the cost of a lane's step: with 16 slots in place of one, HalfCheetah is 1.2 times as fast,
    the hard maze 4 times, and Hopper as fast. Members of one center read its weights together, a whole lane's at once:
    with 32 slots in place of one LargeModel's rollouts are 1.7 times as fast (`--only low_rank`).

    On the GPU three lanes: while the networks of one are evaluated, two have work for the threads, so that these do not
    wait for the last emulator of a lane or for the weights of a new episode. Four slots a thread: a lane's emulators
    then take about a millisecond a step, many times the 0.1 to 0.15 ms that a call of the GPU takes however few its
    rows. `neuroevo bench pipeline` measures it. Rows take at most half of the memory that the GPU has free.

    Args:
        threads: Worker threads.
        device: Where the networks are evaluated, "cpu" or "gpu".
        light: Whether rows are so small and steps so short that a lane's own cost, some 10 microseconds a step, counts.
        members: Whether slots mostly play mutations of low rank of one center.

    Returns:
        Lanes, and slots of each.
    """
    if device == "cpu":
        return threads, _LIGHT_SLOTS if light else _MEMBER_SLOTS if members else 1
    fitting = int(library.gpu_free_bytes() / 2 / (_GPU_LANES * _LARGEST_ROW_BYTES))
    return _GPU_LANES, max(1, min(_GPU_SLOTS_A_THREAD * threads, fitting))
