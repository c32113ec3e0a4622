"""Episodes as arrays for the native core, with the names of custom_ops/rollout/submission.h."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType

import numpy as np

from neuroevo.core.episode import Episode
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome, Mutation, Scaled
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.native.ffi import Episodes, shaped
from neuroevo.native.weights import network_index, root_seed, thetas_of

# Row of the ancestor from which a genome's weights are computed (None: the root), and the mutations after it.
Source = tuple[int | None, Sequence[Mutation]]


@dataclass(frozen=True, eq=False)
class Submission:
    """Submission of E episodes of G genomes, with M mutations in all, that start from V thetas.

    The core checks the values.

    Attributes:
        episode_ids: int64 [E], 0 or more.
        episode_genomes: int64 [E], index in [0, G).
        episode_seeds: int64 [E].
        episode_max_frames: int64 [E], cut-off in emulator frames; 0 for the environment's limit.
        episode_normalizers: int64 [E], numbers in the env pool, or -1 for no normalizer.
        genome_ids: int64 [G]; equal ids mean equal weights during the lifetime of a queue.
        genome_networks: int32 [G].
        genome_sources: int64 [G], a row of the population to start from, or -1.
        genome_seeds: int64 [G], of the initial weights, without source and theta.
        genome_thetas: int64 [G], index in [0, V) of a theta to start from, or -1.
        chain_splits: int64 [G + 1], ascending from 0 to M: where each genome's mutations begin and end.
        chain_seeds: int64 [M].
        chain_scales: float32 [M].
        chain_spreads: int64 [M], a row of the population that multiplies the scale weight by weight, or -1.
        thetas: float32 [V, max D], zeros after the D of a smaller network.
    """

    episode_ids: np.ndarray
    episode_genomes: np.ndarray
    episode_seeds: np.ndarray
    episode_max_frames: np.ndarray
    episode_normalizers: np.ndarray
    genome_ids: np.ndarray
    genome_networks: np.ndarray
    genome_sources: np.ndarray
    genome_seeds: np.ndarray
    genome_thetas: np.ndarray
    chain_splits: np.ndarray
    chain_seeds: np.ndarray
    chain_scales: np.ndarray
    chain_spreads: np.ndarray
    thetas: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name, which are the inputs of the EpisodeQueueSubmit op."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def for_c(self) -> Episodes:
        """Return the structure for neuroevo_rollout_submit, which points to these arrays.

        Raises:
            ValueError: The lengths of the arrays do not match.
        """
        counts = {"episode": len(self.episode_genomes), "genome": len(self.genome_networks)}
        places = {}
        for name, array in self.arrays().items():
            count = counts.get(name.partition("_")[0], len(self.chain_seeds))
            if name == "thetas":
                shape: tuple[int, ...] = (len(array), self.thetas.shape[1])
            else:
                shape = (counts["genome"] + 1 if name == "chain_splits" else count,)
            dtype = {"genome_networks": np.int32, "chain_scales": np.float32, "thetas": np.float32}.get(name, np.int64)
            if array.dtype != dtype or not array.flags.c_contiguous:
                raise ValueError(f"{name} is {array.dtype}, expected a contiguous array of {np.dtype(dtype)}")
            places[name] = shaped(name, array, dtype, shape).ctypes.data
        return Episodes(
            num_episodes=counts["episode"],
            num_genomes=counts["genome"],
            num_mutations=len(self.chain_seeds),
            num_thetas=len(self.thetas),
            theta_size=self.thetas.shape[1],
            **places,
        )


def _from_its_root(genome: Genome) -> Source:
    return None, genome.mutations


def pack(
    episodes: Sequence[Episode],
    *,
    frame_skip: int,
    dimensions: Sequence[int],
    first_id: int = 0,
    genome_ids: Sequence[int] | None = None,
    source: Callable[[Genome], Source] = _from_its_root,
    normalizers: Mapping[Normalizer | None, int] | None = None,
    spreads: Mapping[Genome, int] = MappingProxyType({}),
) -> Submission:
    """Pack episodes into arrays. Genomes with equal ids are stored once.

    Args:
        episodes: Episodes to play.
        frame_skip: Emulator frames per step.
        dimensions: D of each network.
        first_id: Id of the first episode; the ids of the other episodes follow.
        genome_ids: Id of each episode's genome, [E]; by default, equal genomes have the same id, and the ids follow
            those of the episodes, so that all ids are distinct.
        source: Function that returns the source of a genome's weights; by default its root and all its mutations.
        normalizers: Numbers in the env pool of the episodes' normalizers; None: the episodes have no normalizers.
        spreads: Rows of the spreads of scaled mutations, keyed by a genome that has the spread as its root.

    Raises:
        UserError: A genome's center does not fit its network, or its weights are not materialized and no row to start
            from is given.
    """
    numbers: Mapping[Normalizer | None, int] = {None: -1, **(normalizers or {})}
    if genome_ids is None:
        first_genome, ids = first_id + len(episodes), dict[Genome, int]()
        genome_ids = [ids.setdefault(episode.genome, first_genome + len(ids)) for episode in episodes]
    genome_of = dict(zip(genome_ids, (episode.genome for episode in episodes), strict=True))
    places, genomes = {each: index for index, each in enumerate(genome_of)}, list(genome_of.values())
    sources = [source(genome) for genome in genomes]
    for row, chain in sources:
        if chain and not chain[-1].kind.materialized and (row is None or len(chain) != 1):
            raise UserError(f"a mutation of {chain[-1].kind} has no row of its parent to start from")
    dense = [genome if row is None else None for genome, (row, _) in zip(genomes, sources, strict=True)]
    genome_thetas, thetas = thetas_of(dense, dimensions)
    mutations = [
        (network_index(genome), each) for genome, (_, chain) in zip(genomes, sources, strict=True) for each in chain
    ]
    return Submission(
        episode_ids=np.arange(first_id, first_id + len(episodes), dtype=np.int64),
        episode_genomes=_int64([places[each] for each in genome_ids]),
        episode_seeds=_int64([episode.seed for episode in episodes]),
        episode_max_frames=_int64([episode.max_steps * frame_skip for episode in episodes]),
        episode_normalizers=_int64([numbers[episode.normalizer] for episode in episodes]),
        genome_ids=_int64(list(genome_of)),
        genome_networks=np.array([network_index(genome) for genome in genomes], np.int32),
        genome_sources=_int64([-1 if row is None else row for row, _ in sources]),
        genome_seeds=_int64([root_seed(genome) for genome in genomes]),
        genome_thetas=genome_thetas,
        chain_splits=np.cumsum([0, *(len(chain) for _, chain in sources)], dtype=np.int64),
        chain_seeds=_int64([mutation.seed for _, mutation in mutations]),
        chain_scales=np.array([mutation.scale for _, mutation in mutations], np.float32),
        chain_spreads=_int64([_spread_row(mutation, network, spreads) for network, mutation in mutations]),
        thetas=thetas,
    )


def _int64(values: Sequence[int]) -> np.ndarray:
    return np.array(values, np.int64)


def _spread_row(mutation: Mutation, network: int, spreads: Mapping[Genome, int]) -> int:
    """Return the row of a mutation's spread; -1 if it is not scaled. UserError: its spread has no row."""
    if not isinstance(mutation.kind, Scaled):
        return -1
    row = spreads.get(Genome(mutation.kind.spread, network))
    if row is None:
        raise UserError(
            f"no row is given for the spread {mutation.kind.spread} of a scaled mutation, expected one in spreads"
        )
    return row
