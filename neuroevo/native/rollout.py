"""Episodes played by the native lane runner, without TensorFlow: bit for bit those of the TensorFlow graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.env_spec import EnvSpec
from neuroevo.core.episode import Batch, Episode, Outcomes
from neuroevo.native.env_pool import EnvPool
from neuroevo.native.ffi import Episodes, array, call, i64, ref
from neuroevo.native.population import Population
from neuroevo.native.weights import base_seed, thetas_of
from neuroevo.networks.architectures import input_line, to_text


def run_episodes(
    env: EnvSpec,
    networks: Sequence[Callable[[str, int], list[str]]],
    episodes: Sequence[Episode],
    *,
    lanes: int,
    slots: int,
    backend: str = "cpu",
    dtype: str = "float32",
    behavior: Behavior | None = None,
    reference_batch: np.ndarray | None = None,
) -> Outcomes:
    """Plays episodes with the lane runner; every genome is made from its chain. Outcomes are in order.

    networks: functions (observation line, num_actions) -> layer list, whose outputs EnvPool.actions() can take.
    behavior: what to record of each episode; None: nothing.
    reference_batch: what vbn layers take their statistics of, as Population.set_reference() takes it.
    """
    pool = EnvPool(env, lanes * slots)
    if behavior is not None:
        pool.record_behaviors(behavior.every, behavior.samples)
    normalizers = {episode.normalizer for episode in episodes} - {None}
    for each in normalizers:
        pool.set_normalizer(each.number, each.mean, each.std)
    observation = input_line(pool.observation_dtype.name, pool.observation_shape)
    texts = [to_text(net(observation, pool.num_actions)) for net in networks]
    population = Population(texts, lanes * slots, backend, dtype, float_rows=0)
    if reference_batch is not None:
        population.set_reference(reference_batch)
    genomes = list(dict.fromkeys(episode.genome for episode in episodes))
    index = {genome: i for i, genome in enumerate(genomes)}
    theta_of, thetas = thetas_of(genomes, population.dimensions)
    mutations = [mutation for genome in genomes for mutation in genome.chain]
    arrays = {
        "genome_of": array([index[episode.genome] for episode in episodes], np.int64),
        "seeds": array([episode.seed for episode in episodes], np.uint64),
        "max_frames": array([episode.max_steps * pool.frame_skip for episode in episodes], np.int64),
        "normalizers": array([-1 if e.normalizer is None else e.normalizer.number for e in episodes], np.int64),
        "networks": array([genome.network for genome in genomes], np.int32),
        "sources": np.full(len(genomes), -1, np.int64),
        "theta_of": theta_of,
        "base_seeds": array([base_seed(genome) for genome in genomes], np.uint64),
        "chain_splits": np.cumsum([0, *(len(genome.chain) for genome in genomes)], dtype=np.int64),
        "chain_seeds": array([seed for seed, _ in mutations], np.uint64),
        "chain_scales": array([scale for _, scale in mutations], np.float32),
        "theta_values": thetas,
    }
    pointers = {name: array.ctypes.data for name, array in arrays.items()}
    sizes = {"thetas": len(thetas), "theta_size": thetas.shape[1]}
    request = Episodes(episodes=len(episodes), genomes=len(genomes), **sizes, **pointers)
    returns, steps = np.zeros(len(episodes)), np.zeros(len(episodes), np.int64)
    handles = pool._handle, population._handle
    call("run_lanes", *handles, i64(lanes), i64(slots), i64(0), ref(request), returns, steps)
    batch = Batch(len(episodes))
    for ended in pool.take_ended():
        batch.book_end(*ended)
    batch.book(np.arange(len(episodes)), returns, steps)
    return batch.outcomes
