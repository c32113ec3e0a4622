"""The evaluator of this machine: lanes of slots that play episodes, with environments, a population and a queue.

Each lane has a thread of its own that steps its slots until the queue is closed, in the native core or as a TensorFlow
graph (engine.py). While one lane's networks are evaluated, the other lanes' emulators run: all lanes share one pool of
worker threads.
"""

from __future__ import annotations

import atexit
import functools
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.closing import Closing
from neuroevo.core.episode import Batch, Episode, EpisodeResults, OnResults, Outcomes
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import OwnNetworkLimits, Progress, Work
from neuroevo.core.genome import GAUSSIAN, Genome, Kind
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.envs import registry
from neuroevo.envs.environment import Environment
from neuroevo.native import library
from neuroevo.native.submission import pack
from neuroevo.native.weights import NativeWeights
from neuroevo.networks.architectures import network_text
from neuroevo.networks.network import Network, named
from neuroevo.rollout.engine import Engine, EnginePool, EngineRollout
from neuroevo.rollout.engines import make_engine
from neuroevo.rollout.layout import default_layout, default_parent_rows
from neuroevo.rollout.own_networks import OwnNetworks, places_for
from neuroevo.rollout.parent_rows import ParentRows
from neuroevo.rollout.parts import check_networks, check_reference, done, make_pool
from neuroevo.rollout.reference_batch import draw_reference_batch
from neuroevo.rollout.row_cache import needed_rows

_WAIT_SECONDS = 0.05  # the longest time without a look at signals and at the progress


class LocalEvaluator(Closing):
    """Evaluator on this machine's cores, with networks on them or on its GPU; satisfies the Evaluator protocol.

    Args:
        env: Name of an environment, with env_options, or an environment that was found already.
        network: A network or its name, or several, which genomes refer to by index.
        env_options: Options of the environment, where `env` is a name.
        device: "auto" (the GPU where one can be used), "cpu" or "gpu"; outcomes are the same on both.
        threads: Worker threads; by default one per core.
        lanes: Number of lanes; by default chosen for the threads and the device.
        slots: Slots of each lane; likewise.
        parent_rows: How many genomes to cache as rows of weights, so that their offspring are one perturbation away; by
            default as many as cache_megabytes hold, at least 2.
        cache_megabytes: Memory for these rows.
        backend: Of the population, instead of the device's.
        engine: What runs the lanes: "native" ("auto" too) or "tensorflow"; outcomes are the same.
        behavior: What to record of each episode for Outcomes.behaviors; None: nothing.
        kind: Of the last mutations of a population. With one whose weights are not materialized, the parents of such
            genomes and all other genomes take one of the parent rows each.
        own_networks: Limits of genomes' own networks; None: all have one of the networks above.
        reference_batch: Observations [B, ...] from which vbn layers take their statistics, by default 128 that the
            evaluator plays itself, at random from seed 0; and by which safe mutations compare networks.

    Attributes:
        device: Where networks are evaluated, "cpu" or "gpu".
        behavior_size: Number of values recorded per episode.
        behavior_dtype: Their NumPy dtype.
        dimensions: D of each network.
        parent_rows: Number of cached genomes.
        network_texts: The networks as the layer lists that the native core reads.

    Raises:
        UserError: A setting is invalid, the environment has no behavior, or the like.
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
        cache_megabytes: int = 600,
        device: str = "auto",
        backend: str | None = None,
        engine: str | Engine = "auto",
        behavior: Behavior | None = None,
        kind: Kind = GAUSSIAN,
        own_networks: OwnNetworkLimits | None = None,
        reference_batch: np.ndarray | None = None,
    ):
        if device == "auto" and own_networks is not None and own_networks.graphs:
            device = "cpu"
        self.device = library.choose_device(device)
        environment = env if isinstance(env, Environment) else registry.find(env, env_options)
        networks = [named(each) for each in ([network] if isinstance(network, (str, Network)) else network)]
        dtype = check_networks(networks, environment, kind)
        for what, value in (("threads", threads), ("lanes", lanes), ("slots", slots), ("parent_rows", parent_rows)):
            if value is not None and value < 1:
                raise UserError(f"{what} is {value}, expected at least 1")
        if threads is not None:
            library.set_threads(threads)
        self.threads = library.get_threads()
        light = environment.image_observations is False  # numbers are observed: networks are small, steps short
        members = not kind.materialized
        default_lanes, default_slots = default_layout(self.threads, self.device, light, members)
        self.lanes, self.slots = lanes or default_lanes, slots or default_slots
        chosen = make_engine(engine, self.lanes) if isinstance(engine, str) else engine
        pool = make_pool(chosen, environment.spec, self.lanes * self.slots, networks, behavior)
        self.observation_size = math.prod(pool.observation_shape)
        self.num_actions, self.frame_skip = pool.num_actions, pool.frame_skip
        self.behavior_size, self.behavior_dtype = pool.behavior_size, pool.behavior_dtype
        seen = np.dtype(np.uint8 if pool.observation_dtype == np.uint8 else np.float32)  # by the networks
        layers = [
            functools.partial(each.lines, continuous_actions=pool.action_dtype == np.float32) for each in networks
        ]
        self.network_texts = [
            network_text(each, seen.name, pool.observation_shape, pool.num_actions) for each in layers
        ]
        self._prepares = any(each.needs_reference for each in networks)
        if self._prepares and reference_batch is None:
            reference_batch = draw_reference_batch(environment.spec, 0)
        if reference_batch is not None:
            check_reference(reference_batch, seen, pool.observation_shape)
        on_device = backend or library.BACKENDS[self.device]
        configured, texts = self.network_texts, self.network_texts
        if own_networks is not None:
            texts = [*configured, *places_for(own_networks, configured[0])]
        make = functools.partial(chosen.population, texts, backend=on_device, dtype=dtype)
        sizes = done("the population", lambda: make(1)).dimensions
        self.dimension = max(sizes[: len(configured)])
        self.parent_rows = parent_rows or default_parent_rows(max(sizes), dtype, cache_megabytes)
        # The lanes' rows, which nothing is bred from, need no float32 weights beside their integers.
        own = self.parent_rows + 1
        rows = own + self.lanes * self.slots
        population = done("the population", lambda: make(rows, float_rows=own, kind=kind))
        if self._prepares and reference_batch is not None:
            population.set_reference(reference_batch)
        self._kind = kind
        self.dimensions = population.dimensions
        self.weights = NativeWeights(configured, self.device, reference_batch)
        self._playing: dict[int, _Playing] = {}  # by the id of the batch's first episode
        self._next_id = self._next_normalizer = 0
        self._booking = threading.Lock()  # as one thread may submit while another takes results
        self._early: list[tuple[Batch, EpisodeResults]] = []  # booked while a submission waited for places
        self._busy_before, self._began = library.busy_seconds(), time.perf_counter()
        self._steps = 0
        rollout = chosen.rollout(pool, population, lanes=self.lanes, slots=self.slots, first_row=own)
        parents = ParentRows(population, self.parent_rows)
        places = range(len(configured), len(texts))
        self._own = OwnNetworks(population, places, self.weights, parents.cache)
        self._parts: tuple[EnginePool, ParentRows, EngineRollout] | None = (pool, parents, rollout)
        atexit.register(self.close)

    def evaluate(self, episodes: Sequence[Episode], on_progress: Progress | None = None) -> Outcomes:
        """Play all episodes and return their outcomes in order: submit() and wait()."""
        return self.wait(self.submit(episodes), on_progress)

    def submit(
        self,
        episodes: Sequence[Episode],
        priority: int = 0,
        on_results: OnResults | None = None,
        parents: Iterable[Genome] | None = None,
    ) -> Batch:
        """Queue episodes and return at once. Those of a lower priority number are played first.

        Args:
            episodes: What to play.
            priority: See the Evaluator protocol.
            on_results: Likewise.
            parents: Genomes whose weights are kept for more of their children, in this submission or later ones; None
                for those that have several children here.

        Returns:
            The batch, which wait() takes.

        Raises:
            EnvironmentFailure: An environment failed. This, other errors of the engine, and KeyboardInterrupt leave the
                evaluator closed.
        """
        with self._closed_on_failure():
            batch = Batch(len(episodes), self.behavior_size, self.behavior_dtype, on_results)
            if episodes:
                self._submit(batch, episodes, priority, parents)
            return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = math.inf) -> Outcomes:
        """Return the outcomes of a batch in the order of its episodes, once all are over or `seconds` have passed.

        After a time-out, the outcomes are those known so far. Raises the same exceptions as submit().
        """
        end = time.perf_counter() + seconds
        with self._closed_on_failure():
            while batch.left and time.perf_counter() < end:
                self.results(batch.left)
                if on_progress is not None:
                    on_progress(batch.over, int(batch.steps.sum()))
        return batch.outcomes

    def results(self, count: int, seconds: float = _WAIT_SECONDS) -> list[tuple[Batch, EpisodeResults]]:
        """Wait until `count` episodes are over or the time is up, and record them in their batches, as wait() does.

        Returns:
            The new results of each batch that has any; ids are indices in the batch.
        """
        results = self._open()[2].results(count, seconds)
        with self._booking:
            early, self._early = self._early, []
            return [*early, *self._book(results)]

    def _book(self, results: EpisodeResults) -> list[tuple[Batch, EpisodeResults]]:
        """Record results in their batches; return what results() does."""
        (pool, _, rollout), new = self._open(), []
        self._steps = rollout.total_steps
        for first, playing in list(self._playing.items()):
            batch = playing.batch
            own = results.of(first, len(batch.steps))
            if len(own):
                batch.book(own)
                new.append((batch, own))
            if not batch.left:
                pool.drop_normalizers(playing.normalizers)
                del self._playing[first]
        return new

    def work(self) -> Work:
        """Return the work done so far."""
        seconds = time.perf_counter() - self._began
        return Work(self._steps, library.busy_seconds() - self._busy_before, self.threads * seconds)

    def close(self) -> None:
        """Stop the lanes and free the environments and the population. May be called more than once."""
        atexit.unregister(self.close)
        parts, self._parts = self._parts, None
        if parts is not None:
            parts[2].close()

    def _open(self) -> tuple[EnginePool, ParentRows, EngineRollout]:
        """Return environments, parents' rows and lanes.

        Raises:
            RuntimeError: close() was called.
        """
        if self._parts is None:
            raise RuntimeError("the evaluator is closed: it plays nothing after close() or a failure")
        return self._parts

    def _submit(
        self, batch: Batch, episodes: Sequence[Episode], priority: int, parents: Iterable[Genome] | None
    ) -> None:
        _, rows, rollout = self._open()
        episodes, networks = self._with_places(episodes)
        if parents is not None:
            parents = [each for each in map(self._own.translated, parents) if each is not None]
        genomes = list(dict.fromkeys(episode.genome for episode in episodes))
        needed = needed_rows(genomes, self._kind)
        in_use = self._rows_in_use()
        last = {each: (None, [each.mutation]) for each in genomes if each.mutation is not None}
        in_use.update(rows.bring_spreads(last, in_use).values())
        rows.bring_parents([*needed, *(_parents_of(genomes) if parents is None else parents)], in_use)
        sources = {genome: rows.cache.source(genome) for genome in genomes}
        if any(rows.cache.row(genome) is None for genome in needed):
            raise UserError(
                f"{len(needed)} genomes need one of the {self.parent_rows} parent rows each, expected fewer beside "
                "those at play"
            )
        in_use |= {row for row, _ in sources.values() if row is not None}
        spreads = rows.bring_spreads(sources, in_use)
        if self._prepares:  # rows that are played in place
            rows.population.prepare([row for row, mutations in sources.values() if row is not None and not mutations])
        normalizers = self._set_normalizers(episode.normalizer for episode in episodes)
        submission = pack(
            episodes,
            frame_skip=self.frame_skip,
            dimensions=self.dimensions,
            first_id=self._next_id,
            source=sources.__getitem__,
            normalizers=normalizers,
            spreads=spreads,
        )
        starts = {*spreads.values(), *(row for row, _ in sources.values() if row is not None)}
        numbers = [number for number in normalizers.values() if number >= 0]
        self._playing[self._next_id] = _Playing(batch, starts, numbers, networks)
        self._next_id += len(episodes) + len(genomes)
        rollout.submit(submission, priority)

    def _with_places(self, episodes: Sequence[Episode]) -> tuple[Sequence[Episode], set[int]]:
        """Return episodes whose genomes' networks are indices, and which of these are of genomes' own networks."""
        own = dict.fromkeys(each.genome for each in episodes if isinstance(each.genome.network, str))
        if not own:
            return episodes, set()
        while not self._own.bring(own, set().union(*(each.networks for each in list(self._playing.values())))):
            results = self._open()[2].results(1, _WAIT_SECONDS)  # of earlier submissions
            with self._booking:
                self._early += self._book(results)
        translated = {genome: self._own.translated(genome) or genome for genome in own}
        played = [replace(each, genome=translated.get(each.genome, each.genome)) for each in episodes]
        return played, {genome.network for genome in translated.values() if isinstance(genome.network, int)}

    def _rows_in_use(self) -> set[int]:
        """Return the rows that episodes at play or queued start from."""
        return set().union(*(playing.rows for playing in list(self._playing.values())))

    def _set_normalizers(self, normalizers: Iterable[Normalizer | None]) -> dict[Normalizer | None, int]:
        """Register a batch's normalizers with the environments; return their numbers, which no other batch has."""
        numbers: dict[Normalizer | None, int] = {}
        for normalizer in dict.fromkeys(normalizers):
            numbers[normalizer] = -1
            if normalizer is not None:
                numbers[normalizer], self._next_normalizer = self._next_normalizer, self._next_normalizer + 1
                self._open()[0].set_normalizer(numbers[normalizer], normalizer.mean, normalizer.std)
        return numbers


def _parents_of(genomes: Iterable[Genome]) -> list[Genome]:
    """Return the genomes that have several children among these."""
    children = Counter(genome.parent for genome in genomes if genome.parent is not None)
    return [parent for parent, count in children.items() if count > 1]


@dataclass(frozen=True)
class _Playing:
    """A batch that is not over.

    Attributes:
        batch: The batch.
        rows: The parents' rows that its episodes start from.
        normalizers: The numbers of its normalizers.
        networks: The places of genomes' own networks.
    """

    batch: Batch
    rows: set[int]
    normalizers: list[int]
    networks: set[int]
