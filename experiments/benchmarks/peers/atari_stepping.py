"""Stepping Atari environments to uint8 [84, 84, 4] with random actions: EnvPool, or ale-py's AtariVectorEnv.

    python atari_stepping.py {envpool,envpool_async,alevec} GAME ENVS THREADS

envpool_async waits for the first half of the environments to be ready instead of for all of them.

Asked for a number of seconds (see serve.py), it answers {"frames_per_s": emulator frames, four a step, per second}.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from serve import serve

_FRAME_SKIP = 4


def envpool_steps(game: str, envs: int, threads: int, batch: int | None = None) -> Callable[[], int]:
    """A function that steps an EnvPool once and returns how many environments it stepped."""
    from pools import make_envpool

    pool = make_envpool(game, envs, threads, batch)
    if batch is None:
        pool.reset()
        return _stepper(pool, pool.action_space.n, envs)
    rng = np.random.default_rng(0)
    pool.async_reset()

    def step() -> int:
        ready = pool.recv()[-1]["env_id"]
        pool.send(rng.integers(pool.action_space.n, size=len(ready), dtype=np.int32), ready)
        return len(ready)

    return step


def envpool_async_steps(game: str, envs: int, threads: int) -> Callable[[], int]:
    """The same without waiting for the slower half."""
    return envpool_steps(game, envs, threads, envs // 2)


def alevec_steps(game: str, envs: int, threads: int) -> Callable[[], int]:
    """A function that steps all environments of an AtariVectorEnv once."""
    from ale_py.vector_env import AtariVectorEnv

    vector = AtariVectorEnv(game, num_envs=envs, num_threads=threads, reward_clipping=False, episodic_life=False)
    vector.reset()
    return _stepper(vector, vector.single_action_space.n, envs)


def _stepper(env: object, actions: int, envs: int) -> Callable[[], int]:
    rng = np.random.default_rng(0)

    def step() -> int:
        env.step(rng.integers(actions, size=envs, dtype=np.int32))
        return envs

    return step


def main() -> None:
    peer, game, envs, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    known = {"envpool": envpool_steps, "envpool_async": envpool_async_steps, "alevec": alevec_steps}
    step = known[peer](game, envs, threads)

    def measure(seconds: float) -> dict[str, object]:
        steps, began = 0, time.perf_counter()
        while time.perf_counter() < began + seconds:
            steps += step()
        return {"frames_per_s": _FRAME_SKIP * steps / (time.perf_counter() - began)}

    measure(0.5)
    serve(measure)


if __name__ == "__main__":
    main()
