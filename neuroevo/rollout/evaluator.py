"""Evaluator on this machine: lanes of slots that play episodes, with environments, a population and a queue.

Each lane has its own thread that steps its slots until the queue is closed, in the native core or as a TensorFlow graph
(engine.py). All lanes share one pool of worker threads: while one lane's networks are evaluated, the other lanes'
emulators run.
"""

from __future__ import annotations

import atexit
import functools
import math
import threading
import time
from collections import ChainMap, Counter
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

_WAIT_SECONDS = 0.05  # interval at which signals are handled and progress is reported


class LocalEvaluator(Closing):
    """Evaluator on this machine's cores, with networks on the cores or the GPU; implements the Evaluator protocol.

    Args:
        env: Name of an environment, or an Environment.
        network: A network or its name, or several, which genomes refer to by index.
        env_options: Options of the environment, if `env` is a name.
        device: "auto" (the GPU if one is usable), "cpu" or "gpu"; outcomes are identical on both.
        threads: Worker threads; by default one per core.
        lanes: Number of lanes; by default chosen for the threads and the device.
        slots: Number of slots per lane; likewise.
        parent_rows: Number of genomes to cache as rows of weights, so that an offspring needs a single perturbation; by
            default as many as fit in cache_megabytes, at least 2.
        cache_megabytes: Memory for the cached rows.
        backend: Backend of the population, instead of the device's.
        engine: Engine that runs the lanes: "native" (also "auto") or "tensorflow"; outcomes are identical.
        behavior: Behavior to record of each episode for Outcomes.behaviors; None to record nothing.
        kind: Kind of the last mutations of a population. If its weights are not materialized, the parents of such
            genomes and all other genomes need a parent row each.
        own_networks: Limits of genomes' own networks; None if all genomes have a network of `network`.
        reference_batch: Observations [B, ...] from which vbn layers compute their statistics and on which safe
            mutations compare networks; by default, for vbn layers, 128 observations of random play from seed 0.
        share_plays: Whether episodes of a genome that reach the same state may be played once from there on, which the
            native engine does for environments whose states have keys; outcomes are identical. False for benchmarks.

    Attributes:
        device: Where networks are evaluated, "cpu" or "gpu".
        behavior_size: Number of values recorded per episode.
        behavior_dtype: NumPy dtype of the recorded values.
        dimensions: D of each network.
        parent_rows: Number of cached genomes.
        network_texts: Layer lists of the networks for the native core.

    Raises:
        UserError: A setting is invalid, for example a behavior is requested from an environment without behaviors.
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
        share_plays: bool = True,
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
        light = environment.image_observations is False  # vector observations: small networks, short steps
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
        # The lanes' rows are never parents, so they need no float32 weights in addition to their integers.
        own = self.parent_rows + 1
        rows = own + self.lanes * self.slots
        population = done("the population", lambda: make(rows, float_rows=own, kind=kind))
        if self._prepares and reference_batch is not None:
            population.set_reference(reference_batch)
        self._kind = kind
        self.dimensions = population.dimensions
        self.weights = NativeWeights(configured, self.device, reference_batch)
        self._playing: dict[int, _Playing] = {}  # by the id of the batch's first episode
        self._next_id = self._next_genome = self._next_normalizer = 0
        self._shares = share_plays
        self._booking = threading.Lock()  # one thread may submit while another one receives results
        self._early: list[tuple[Batch, EpisodeResults]] = []  # recorded while a submission waited for places
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
        """Queue episodes and return immediately. Episodes with a lower priority number are played first.

        Args:
            episodes: Episodes to play.
            priority: See the Evaluator protocol.
            on_results: See the Evaluator protocol.
            parents: Genomes whose weights to cache for further children, in this or later submissions; None selects
                the genomes with several children in this submission.

        Returns:
            The batch, for wait().

        Raises:
            EnvironmentFailure: An environment failed. This, other errors of the engine, and KeyboardInterrupt close the
                evaluator.
        """
        with self._closed_on_failure():
            batch = Batch(len(episodes), self.behavior_size, self.behavior_dtype, on_results)
            if episodes:
                self._submit(batch, episodes, priority, parents)
            return batch

    def wait(self, batch: Batch, on_progress: Progress | None = None, seconds: float = math.inf) -> Outcomes:
        """Return the outcomes of a batch in the order of its episodes, once all are over or `seconds` have passed.

        After a timeout, the outcomes are those received so far. Raises the same exceptions as submit().
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
            The new results of each batch with new results; ids are indices in the batch.
        """
        results = self._open()[2].results(count, seconds)
        with self._booking:
            early, self._early = self._early, []
            return [*early, *self._book(results)]

    def _book(self, results: EpisodeResults) -> list[tuple[Batch, EpisodeResults]]:
        """Record results in their batches, and return the new results of each batch as results() does."""
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
            raise RuntimeError("the evaluator is closed: it cannot play episodes after close() or a failure")
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
                f"{len(needed)} genomes need a parent row each, but the {self.parent_rows} parent rows are not enough "
                "for these and the genomes being played"
            )
        in_use |= {row for row, _ in sources.values() if row is not None}
        spreads = rows.bring_spreads(sources, in_use)
        if self._prepares:  # rows of genomes that are played without a further mutation
            rows.population.prepare([row for row, mutations in sources.values() if row is not None and not mutations])
        normalizers = self._set_normalizers(episode.normalizer for episode in episodes)
        ids = self._genome_ids(episodes)
        submission = pack(
            episodes,
            frame_skip=self.frame_skip,
            dimensions=self.dimensions,
            first_id=self._next_id,
            genome_ids=ids,
            source=sources.__getitem__,
            normalizers=normalizers,
            spreads=spreads,
        )
        played = dict(zip(map(_shared, episodes), ids, strict=True))
        starts = {*spreads.values(), *(row for row, _ in sources.values() if row is not None)}
        numbers = [number for number in normalizers.values() if number >= 0]
        self._playing[self._next_id] = _Playing(batch, starts, numbers, networks, played)
        self._next_id += len(episodes)
        rollout.submit(submission, priority)

    def _with_places(self, episodes: Sequence[Episode]) -> tuple[Sequence[Episode], set[int]]:
        """Return the episodes with networks replaced by indices, and the indices of genomes' own networks."""
        own = dict.fromkeys(each.genome for each in episodes if isinstance(each.genome.network, str))
        if not own:
            return episodes, set()
        while not self._own.bring(own, set().union(*(each.networks for each in list(self._playing.values())))):
            results = self._open()[2].results(1, _WAIT_SECONDS)  # results of earlier submissions
            with self._booking:
                self._early += self._book(results)
        translated = {genome: self._own.translated(genome) or genome for genome in own}
        played = [replace(each, genome=translated.get(each.genome, each.genome)) for each in episodes]
        return played, {genome.network for genome in translated.values() if isinstance(genome.network, int)}

    def _genome_ids(self, episodes: Sequence[Episode]) -> list[int]:
        """Return the id of each episode's genome; a genome that is being played keeps its id, to share its plays.

        It has an id for each cut-off: an episode that followed one with a later cut-off might be played from the start.
        """
        known = ChainMap({}, *(playing.genomes for playing in list(self._playing.values())))
        ids = []
        for episode in episodes:
            number = known.get(_shared(episode)) if self._shares else None
            if number is None:
                number = known[_shared(episode)] = self._next_genome
                self._next_genome += 1
            ids.append(number)
        return ids

    def _rows_in_use(self) -> set[int]:
        """Return the rows from which queued or running episodes start."""
        return set().union(*(playing.rows for playing in list(self._playing.values())))

    def _set_normalizers(self, normalizers: Iterable[Normalizer | None]) -> dict[Normalizer | None, int]:
        """Register a batch's normalizers with the environments; return their numbers, unique to the batch."""
        numbers: dict[Normalizer | None, int] = {}
        for normalizer in dict.fromkeys(normalizers):
            numbers[normalizer] = -1
            if normalizer is not None:
                numbers[normalizer], self._next_normalizer = self._next_normalizer, self._next_normalizer + 1
                self._open()[0].set_normalizer(numbers[normalizer], normalizer.mean, normalizer.std)
        return numbers


def _shared(episode: Episode) -> tuple[Genome, int]:
    return episode.genome, episode.max_steps


def _parents_of(genomes: Iterable[Genome]) -> list[Genome]:
    """Return the genomes that have several children among these."""
    children = Counter(genome.parent for genome in genomes if genome.parent is not None)
    return [parent for parent, count in children.items() if count > 1]


@dataclass(frozen=True)
class _Playing:
    """Batch with unfinished episodes.

    Attributes:
        batch: The batch.
        rows: Parent rows from which its episodes start.
        normalizers: Numbers of its normalizers.
        networks: Indices of genomes' own networks in it.
        genomes: Ids of its genomes, by genome and cut-off.
    """

    batch: Batch
    rows: set[int]
    normalizers: list[int]
    networks: set[int]
    genomes: dict[tuple[Genome, int], int]
