"""Policy gradient in NumPy on neuroevo's vector environments with Gymnasium's interface.

    python -m experiments.examples.policy_gradient [--env InvertedPendulum-v5] [--iterations 40] [--seed 0]

A linear policy with normally distributed actions follows the gradient of Williams 1992 (REINFORCE), with a quadratic
baseline fitted to each batch. It prints the mean return of the last 100 episodes after each batch. TensorFlow is not
used.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from gymnasium.spaces import Box
from gymnasium.wrappers.vector import NormalizeObservation, RecordEpisodeStatistics

from neuroevo.envs.vector import make_vec

_DISCOUNT = 0.99
_STD = 0.5  # standard deviation of actions
_RATE = 0.3


def policy_gradient(
    env: Annotated[str, typer.Option(help="A task with continuous actions.")] = "InvertedPendulum-v5",
    num_envs: Annotated[int, typer.Option("--envs", min=1)] = 16,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each environment per batch.")] = 128,
    iterations: Annotated[int, typer.Option(min=1)] = 40,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> list[float]:
    """Train a linear policy; return the mean returns after each batch."""
    played = make_vec(env, num_envs)
    if not isinstance(played.single_action_space, Box):
        raise typer.BadParameter(f"actions in {env} are {played.single_action_space}, expected a Box of numbers")
    vector = RecordEpisodeStatistics(NormalizeObservation(played))
    rng = np.random.default_rng(seed)
    observations, _ = vector.reset(seed=seed)
    seen = vector.single_observation_space.shape[0]
    policy = np.zeros((seen + 1, vector.single_action_space.shape[0]))  # one row is the bias
    over, means = np.zeros(num_envs, bool), []
    for _ in range(iterations):
        inputs, noises, rewards, ends, played = [], [], [], [], []
        for _ in range(steps):
            inputs.append(np.concatenate([observations, np.ones((num_envs, 1))], axis=1))
            noises.append(rng.normal(size=(num_envs, policy.shape[1])))
            played.append(~over)  # the step after an end resets the environment and ignores the action
            observations, reward, terminated, truncated, _ = vector.step(inputs[-1] @ policy + _STD * noises[-1])
            over = terminated | truncated
            rewards.append(reward)
            ends.append(over)
        returns, follows = np.zeros((steps, num_envs)), np.zeros(num_envs)
        for t in reversed(range(steps)):
            follows = returns[t] = rewards[t] + _DISCOUNT * follows * ~ends[t]
        kept = np.array(played).reshape(-1)
        x, noise, goal = np.reshape(inputs, (-1, seen + 1))[kept], np.reshape(noises, (len(kept), -1))[kept], returns
        goal = goal.reshape(-1)[kept]
        features = np.concatenate([x, x[:, :-1] ** 2], axis=1)
        advantage = goal - features @ np.linalg.lstsq(features, goal, rcond=None)[0]
        policy += _RATE * x.T @ (noise * (advantage / (advantage.std() + 1e-8))[:, None]) / len(x)
        means.append(float(np.mean(vector.return_queue)) if vector.return_queue else np.nan)
        print(f"{vector.episode_count:6d} episodes, mean return of the last 100: {means[-1]:.1f}")
    vector.close()
    return means


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(policy_gradient)
    app()
