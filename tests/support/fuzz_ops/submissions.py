"""Random episodes for a queue, as the arrays of EpisodeQueueSubmit, some of which no queue may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tests.support.fuzz_ops.values import Draw, int64

_WIDTH = 3  # of the weights that genomes may start from


@dataclass(frozen=True)
class Genome:
    """As EpisodeQueueSubmit takes it. theta: bytes of its weights; empty for none."""

    id: int
    network: int
    source: int
    seed: int
    theta: bytes
    chain: tuple[tuple[int, bytes, int], ...]


@dataclass(frozen=True)
class Episode:
    id: int
    genome: Genome
    seed: int
    max_frames: int
    normalizer: int


@dataclass
class Submission:
    """Episodes with their arrays. wrong: words, one of which the message must have, if it cannot be taken."""

    episodes: list[Episode]
    genomes: list[Genome]
    priority: int
    arrays: dict[str, np.ndarray]
    wrong: list[str] = field(default_factory=list)

    @property
    def paired(self) -> list[str]:
        return [name for name in self.arrays if name not in ("priority", "thetas")]


def submission(draw: Draw, known: Mapping[int, Genome], next_id: int, first_row: int) -> Submission:
    """Some episodes of some genomes, of which a few are known; their ids begin with next_id."""
    count = draw.choice((0, 1, 2, 3, 8))
    thetas = draw.floats(draw.choice((0, 1, 2)), _WIDTH, extreme=0.1)
    genomes = [_genome(draw, next_id + count + g, thetas, first_row) for g in range(draw.choice((1, 1, 2, 3)))]
    new = list(genomes)
    if known and draw.chance(0.3):  # without one that starts from a theta, as these are not submitted again
        genomes += [genome for genome in draw.sample(list(known.values()), 1) if not genome.theta]
    episodes = [
        Episode(next_id + e, draw.choice(genomes), draw.seeds(1)[0], draw.choice((1, 4, 30)), draw.choice((-1, 0, 9)))
        for e in range(count)
    ]
    given = Submission(episodes, new, draw.choice((0, 0, 1, -1, 2**63 - 1, -(2**63))), {})
    given.arrays = _arrays(given, genomes, thetas)
    if draw.chance(0.15):
        _damage(draw, given, len(genomes), first_row)
    return given


def _genome(draw: Draw, number: int, thetas: np.ndarray, first_row: int) -> Genome:
    start = draw.choice(("seed", "source", "theta"))
    source = draw.randrange(first_row) if start == "source" and first_row else -1
    theta = thetas[draw.randrange(len(thetas))].tobytes() if start == "theta" and len(thetas) else b""
    length = draw.choice((0, 0, 1, 3))
    scales = np.array([draw.choice((0.1, -2.0, 1e-45, float("nan"))) for _ in range(length)], np.float32)
    spreads = [draw.randrange(-1, first_row) for _ in scales]
    chain = tuple(zip(draw.seeds(len(scales)), [scale.tobytes() for scale in scales], spreads, strict=True))
    return Genome(number, draw.choice((0, 1, 2**31 - 1)), source, draw.seeds(1)[0], theta, chain)


def _arrays(given: Submission, genomes: list[Genome], thetas: np.ndarray) -> dict[str, np.ndarray]:
    rows = [theta.tobytes() for theta in thetas]
    chains = [mutation for genome in genomes for mutation in genome.chain]
    return {
        "episode_ids": int64([episode.id for episode in given.episodes]),
        "episode_genomes": int64([genomes.index(episode.genome) for episode in given.episodes]),
        "episode_seeds": int64([episode.seed for episode in given.episodes]),
        "episode_max_frames": int64([episode.max_frames for episode in given.episodes]),
        "episode_normalizers": int64([episode.normalizer for episode in given.episodes]),
        "genome_ids": int64([genome.id for genome in genomes]),
        "genome_networks": np.array([genome.network for genome in genomes], np.int32),
        "genome_sources": int64([genome.source for genome in genomes]),
        "genome_seeds": int64([genome.seed for genome in genomes]),
        "genome_thetas": int64([rows.index(genome.theta) if genome.theta else -1 for genome in genomes]),
        "chain_splits": np.cumsum([0, *(len(genome.chain) for genome in genomes)], dtype=np.int64),
        "chain_seeds": int64([seed for seed, *_ in chains]),
        "chain_scales": np.frombuffer(b"".join(scale for _, scale, _ in chains), np.float32),
        "chain_spreads": int64([spread for *_, spread in chains]),
        "thetas": thetas,
        "priority": int64(given.priority),
    }


def _damage(draw: Draw, given: Submission, genomes: int, first_row: int) -> None:
    """Puts one number out of its range."""
    mutations = len(given.arrays["chain_seeds"])
    far = (2**40, 2**63 - 1)
    damages: dict[str, tuple[int, ...]] = {
        "genome_networks": (-1, -(2**31)),
        "genome_thetas": (-2, len(given.arrays["thetas"]), *far, -(2**63)),
        "chain_splits": (-1, mutations + 1, *far, -(2**63)),
    }
    if given.episodes:
        damages |= {
            "episode_genomes": (-1, genomes, *far, -(2**63)),
            "episode_max_frames": (-1, -(2**63)),
            "episode_normalizers": (-2, -(2**63)),
            "episode_ids": (-1, -(2**63)),
        }
    if len(given.episodes) > 0 and genomes == 1:  # the queue receives no genome without episodes
        damages |= {"genome_ids": (-1, -(2**63)), "genome_sources": (-2, first_row, *far)}
        damages |= {"chain_spreads": (-2, first_row, *far)} if mutations else {}
    name = draw.choice(list(damages))
    array = given.arrays[name].copy()
    at, value = draw.randrange(len(array)), draw.choice(damages[name])
    array[at] = value
    given.arrays[name] = array
    given.wrong = [str(value)]
