"""neuroevo's environments in Stable-Baselines3, trained with PPO. Requires pip install stable-baselines3.

    python -m experiments.examples.stable_baselines train [--env ALE/Breakout-v5] [--steps 100000] [--seed 0]
    python -m experiments.examples.stable_baselines speed [--env ALE/Breakout-v5] [--envs 8]

`train` prints the mean return of the last 100 episodes after each batch. `speed` takes random actions in neuroevo's
environments and in Stable-Baselines3's vectors of Gymnasium environments with the same preprocessing, in turns, and
prints the median throughput.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import ale_py
import gymnasium
import numpy as np
import typer
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecMonitor

from neuroevo.envs.vector import make_vec

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


class NeuroevoVecEnv(VecEnv):
    """Stable-Baselines3 interface of make_vec(), with environments that reset in the step that ends an episode."""

    def __init__(self, name: str, num_envs: int, **options: Any):
        self._vector = make_vec(name, num_envs, autoreset_mode="SameStep", **options)
        super().__init__(num_envs, self._vector.single_observation_space, self._vector.single_action_space)

    def reset(self) -> np.ndarray:
        observations, _ = self._vector.reset(seed=self._seeds)
        self._reset_seeds()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminated, truncated, given = self._vector.step(self._actions)
        over = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over):
            infos[i]["terminal_observation"] = given["final_obs"][i]
            infos[i]["TimeLimit.truncated"] = bool(truncated[i] and not terminated[i])
        return observations, rewards.astype(np.float32), over, infos

    def close(self) -> None:
        self._vector.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self._vector.render() or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self._vector, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"{attr_name} cannot be set: these environments are not objects of Python")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **keywords: Any) -> list[Any]:
        raise AttributeError(f"{method_name} cannot be called: these environments are not objects of Python")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]


@app.command()
def train(
    env: Annotated[str, typer.Option(help="A game or a task.")] = "ALE/Breakout-v5",
    num_envs: Annotated[int, typer.Option("--envs", min=1)] = 8,
    batch: Annotated[int, typer.Option(min=2, help="Steps of each environment between two updates.")] = 128,
    steps: Annotated[int, typer.Option(min=1, help="Of all environments.")] = 100_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> list[float]:
    """Train with PPO (Schulman et al. 2017); return the mean returns after each batch."""
    vector = VecMonitor(NeuroevoVecEnv(env, num_envs))
    images = vector.observation_space.dtype == np.uint8
    settings = {"n_epochs": 4, "learning_rate": 2.5e-4, "clip_range": 0.1, "ent_coef": 0.01} if images else {}
    minibatch = min(256 if images else 64, num_envs * batch)
    policy = "CnnPolicy" if images else "MlpPolicy"
    learner = PPO(policy, vector, n_steps=batch, batch_size=minibatch, seed=seed, device="cpu", **settings)
    means: list[float] = []
    latest: deque[float] = deque(maxlen=100)

    def after_a_step(given: dict[str, Any], _: dict[str, Any]) -> bool:
        latest.extend(info["episode"]["r"] for info in given["infos"] if "episode" in info)
        if given["n_steps"] == batch - 1:
            means.append(float(np.mean(latest)) if latest else np.nan)
            print(f"{given['self'].num_timesteps:9,d} steps, mean return of the last 100 episodes: {means[-1]:.1f}")
        return True

    learner.learn(steps, callback=after_a_step)
    vector.close()
    return means


def theirs(name: str) -> Callable[[], gymnasium.Env]:
    """Return a factory of a Gymnasium environment; Atari games have the same preprocessing as neuroevo's."""

    def make() -> gymnasium.Env:
        if not name.startswith("ALE/"):
            return gymnasium.make(name)
        gymnasium.register_envs(ale_py)
        return FrameStackObservation(AtariPreprocessing(gymnasium.make(name, frameskip=1)), 4)

    return make


@app.command()
def speed(
    env: Annotated[str, typer.Option(help="ALE/*-v5, or a task of Gymnasium.")] = "ALE/Breakout-v5",
    num_envs: Annotated[int, typer.Option("--envs", min=1)] = 8,
    seconds: Annotated[float, typer.Option(min=0.1, help="Of each measurement.")] = 5.0,
    rounds: Annotated[int, typer.Option(min=1)] = 3,
) -> dict[str, float]:
    """Return steps per second of random play without learning, medians over alternating rounds."""
    vectors: dict[str, Callable[[], VecEnv]] = {
        "neuroevo": lambda: NeuroevoVecEnv(env, num_envs),
        "DummyVecEnv": lambda: DummyVecEnv([theirs(env)] * num_envs),
        "SubprocVecEnv": lambda: SubprocVecEnv([theirs(env)] * num_envs),
    }
    rates: dict[str, list[float]] = {name: [] for name in vectors}
    for _ in range(rounds):
        for name, make in vectors.items():
            vector = make()
            vector.seed(0)
            vector.reset()
            rng, done, begun = np.random.default_rng(0), 0, time.perf_counter()
            while time.perf_counter() - begun < seconds:
                if isinstance(vector.action_space, gymnasium.spaces.Discrete):
                    actions = rng.integers(vector.action_space.n, size=num_envs)
                else:
                    low, high = vector.action_space.low, vector.action_space.high
                    actions = rng.uniform(low, high, (num_envs, *low.shape)).astype(np.float32)
                vector.step(actions)
                done += num_envs
            rates[name].append(done / (time.perf_counter() - begun))
            vector.close()
    medians = {name: statistics.median(each) for name, each in rates.items()}
    for name, rate in medians.items():
        print(f"{name:14s} {rate:10,.0f} steps/s   {medians['neuroevo'] / rate:5.2f}")
    return medians


if __name__ == "__main__":
    app()
