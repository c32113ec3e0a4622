"""The reference batch of virtual batch normalization (Salimans et al. 2017): observations of seeded random play.

As in the evolution-strategies-starter of 2017 and the deep-neuroevolution code of 2018, one environment plays, each
action is drawn uniformly, an observation is kept after every step, and where an episode ends another one begins. Unlike
there, where each start of a program drew a batch of its own, a batch follows from a seed: the actions and the episodes'
seeds (no-op starts) are those of randomness.REFERENCE. An episode's first observation is not in it, as in 2017; in 2018
it could be, since nothing said whether the step or the look at the screen came first.

A network's outputs mean nothing without the batch that its statistics are of. So a run keeps it in its folder, as
reference.npy, and does not play it again; info.json has its SHA-256 sum.
"""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import numpy as np

from neuroevo import envs
from neuroevo.config import Config
from neuroevo.envs import EnvRecipe
from neuroevo.errors import UserError
from neuroevo.files import write_atomically
from neuroevo.native import EnvPool, NativeError
from neuroevo.randomness import Purpose, draw_indices, draw_seeds, draw_uniforms

REFERENCE = "reference.npy"
_SUM = "reference_sha256"  # in info.json
COUNT = 128  # observations, in both papers
_ACTIONS, _EPISODES = range(2)  # what is drawn for, in place of a generation


def reference(env: EnvRecipe, seed: int, count: int = COUNT) -> np.ndarray:
    """`count` observations of random play as networks see them: uint8, or float32 and not normalized, [count, ...].

    Action t is the t-th index drawn from (seed, 0, REFERENCE), or, where an action is a vector, its numbers are the
    t-th of uniform ones between the bounds; the seed of episode e is the e-th drawn from (seed, 1, REFERENCE). Episodes
    last until the environment's own limit. UserError: actions have no bounds, or the environment cannot be made.
    """
    pool = _pool(env)
    observe = pool.observe if pool.observation_dtype == np.uint8 else pool.observe_normalized
    actions = _random_actions(pool, env, seed, count)
    seeds = iter(draw_seeds(count, seed, _EPISODES, Purpose.REFERENCE))
    batch, over = [], True
    for action in actions:
        if over:
            pool.reset([0], [next(seeds)], [0])
        _, (over,) = pool.step([0], action[None])
        batch.append(observe([0])[0])
    return np.stack(batch)


def save(folder: Path, batch: np.ndarray) -> None:
    """Puts a batch into a run's folder; OSError."""
    file = io.BytesIO()
    np.save(file, batch, allow_pickle=False)
    write_atomically(folder / REFERENCE, file.getvalue())


def facts(batch: np.ndarray | None) -> dict[str, str]:
    """What a run's info.json says of its batch: nothing where it has none."""
    return {} if batch is None else {_SUM: _sum(batch)}


def load(folder: Path, config: Config) -> np.ndarray | None:
    """The batch in the folder of a configuration's run; None where its network needs none.

    UserError: it is missing or damaged, it is not of the environment's observations, or info.json has another's sum.
    """
    if not config.network.needs_reference:
        return None
    pool = _pool(envs.resolve(config.env.name, config.env.options))
    dtype = np.dtype(np.uint8 if pool.observation_dtype == np.uint8 else np.float32)
    path, shape = folder / REFERENCE, (COUNT, *pool.observation_shape)
    expected = f"expected the reference batch of {config.network}: {dtype} {list(shape)}"
    try:
        batch = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
    except FileNotFoundError:
        raise UserError(f"{path} is missing; {expected}") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; {expected}") from None
    except Exception as error:  # NumPy's, of its header's Python and of zip files too
        raise UserError(f"{path} is damaged ({error}); {expected}") from None
    if not isinstance(batch, np.ndarray):
        raise UserError(f"{path} is an archive of arrays; {expected}")
    if batch.dtype != dtype or batch.shape != shape:
        raise UserError(f"{path} holds {batch.dtype} {list(batch.shape)}; {expected}")
    try:
        noted = json.loads((folder / "info.json").read_text(encoding="utf-8"))[_SUM]
    except (OSError, ValueError, LookupError, TypeError):
        return batch  # a run goes on without its info.json
    if noted != _sum(batch):
        raise UserError(
            f"{path} is another batch than the run began with: its SHA-256 sum is {_sum(batch)}, not {noted}"
        )
    return batch


def _sum(batch: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(batch).tobytes()).hexdigest()


def _pool(env: EnvRecipe) -> EnvPool:
    try:
        return EnvPool(env, 1)
    except NativeError as error:
        raise UserError(f"{env.name} cannot be made: {error}") from None


def _random_actions(pool: EnvPool, env: EnvRecipe, seed: int, count: int) -> np.ndarray:
    """What pool.step() takes, one after another: int32 [count], or float32 [count, A]."""
    if pool.action_dtype == np.int32:
        return np.array(draw_indices(count, pool.num_actions, seed, _ACTIONS, Purpose.REFERENCE), np.int32)
    low, high = pool.action_low, pool.action_high
    if not np.isfinite([low, high]).all():
        raise UserError(f"an action of {env.name} lies between {low} and {high}, expected finite bounds to draw within")
    numbers = draw_uniforms(count * len(low), seed, _ACTIONS, Purpose.REFERENCE).reshape(count, len(low))
    return (low + (high - low) * numbers).astype(np.float32)
