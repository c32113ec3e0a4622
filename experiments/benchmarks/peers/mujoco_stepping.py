"""Stepping Gymnasium's MuJoCo tasks with random actions: EnvPool, or Gymnasium's own AsyncVectorEnv.

    python mujoco_stepping.py {envpool,envpool_async,gymnasium} TASK ENVS THREADS

envpool_async waits for the first half of the environments to be ready instead of for all of them. gymnasium has a
process for every environment, whatever the threads.

Asked for a number of seconds (see serve.py), it answers {"steps_per_s": steps per second}.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from serve import serve


def envpool_steps(task: str, envs: int, threads: int, batch: int | None = None) -> Callable[[], int]:
    """A function that steps an EnvPool once and returns how many environments it stepped."""
    import envpool

    pool = envpool.make_gymnasium(task, num_envs=envs, batch_size=batch or envs, num_threads=threads)
    actions = _actions(pool.action_space, batch or envs)
    if batch is None:
        pool.reset()
        return _stepper(pool, actions)
    pool.async_reset()

    def step() -> int:
        ready = pool.recv()[-1]["env_id"]
        pool.send(actions(), ready)
        return len(ready)

    return step


def envpool_async_steps(task: str, envs: int, threads: int) -> Callable[[], int]:
    """The same without waiting for the slower half."""
    return envpool_steps(task, envs, threads, envs // 2)


def gymnasium_steps(task: str, envs: int, threads: int) -> Callable[[], int]:  # noqa: ARG001
    """A function that steps all environments of an AsyncVectorEnv once."""
    import gymnasium
    import mujoco

    def make() -> gymnasium.Env:
        mujoco.set_mju_user_warning(lambda text: None)  # of old words in Gymnasium's models, by every process
        return gymnasium.make(task)

    vector = gymnasium.vector.AsyncVectorEnv([make] * envs)
    vector.reset(seed=0)
    return _stepper(vector, _actions(vector.single_action_space, envs))


def _actions(space: object, envs: int) -> Callable[[], np.ndarray]:
    """A function that draws an action for each of the environments."""
    rng, shape = np.random.default_rng(0), (envs, *space.shape)
    return lambda: rng.uniform(space.low, space.high, shape).astype(space.dtype)


def _stepper(env: object, actions: Callable[[], np.ndarray]) -> Callable[[], int]:
    def step() -> int:
        drawn = actions()
        env.step(drawn)
        return len(drawn)

    return step


def main() -> None:
    peer, task, envs, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    known = {"envpool": envpool_steps, "envpool_async": envpool_async_steps, "gymnasium": gymnasium_steps}
    step = known[peer](task, envs, threads)

    def measure(seconds: float) -> dict[str, object]:
        steps, began = 0, time.perf_counter()
        while time.perf_counter() < began + seconds:
            steps += step()
        return {"steps_per_s": steps / (time.perf_counter() - began)}

    measure(0.5)
    serve(measure)


if __name__ == "__main__":
    main()
