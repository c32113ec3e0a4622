"""Compare the throughput of A2C on neuroevo's EnvPool and on ale-py's AtariVectorEnv, measured in turns.

    TF_ENABLE_ONEDNN_OPTS=1 .venv/bin/python -m experiments.peers.collecting --game pong --rounds 5

Both use the Keras model, the update and the batch of experiments/examples/a2c.py, without sticky actions. EnvPool's
agent collects and learns in one graph. The agent on AtariVectorEnv steps the vector in Python, and calls graphs of the
model once per step and of the update once per batch. The table lists medians and ranges of collecting alone and of
collecting with learning.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from ale_py.vector_env import AtariVectorEnv

from experiments.examples.a2c import Batch, Learner, discounted
from neuroevo.tf import EnvPool

STEPS = 5  # steps of each environment per batch


class OnVector:
    """The agent on AtariVectorEnv.

    Args:
        game: Name of the game.
        learner: The learner with the model and the update.
        num_envs: Number of environments, N.
    """

    def __init__(self, game: str, learner: Learner, num_envs: int):
        self._env = AtariVectorEnv(game, num_envs=num_envs, reward_clipping=False, episodic_life=False)
        self._model, self._update = learner.model, tf.function(learner.learn)
        self._seen = self._shown(self._env.reset(seed=0)[0])
        self._act, self._value = tf.function(self._act_eagerly), tf.function(lambda seen: self._model(seen)[1][:, 0])

    def play(self, batches: int, learns: bool) -> None:
        """Collect batches, and learn from each."""
        for _ in range(batches):
            observations, actions, rewards, ends = [], [], [], []
            for _ in range(STEPS):
                observations.append(self._seen)
                actions.append(self._act(self._seen).numpy())
                seen, reward, terminated, truncated, _ = self._env.step(actions[-1])
                self._seen = self._shown(seen)
                rewards.append(np.sign(reward).astype(np.float32))
                ends.append(terminated | truncated)
            returns = discounted(rewards, ends, self._value(self._seen))
            if learns:
                self._update(Batch(np.stack(observations), np.stack(actions), tf.stack(returns)))

    def _act_eagerly(self, seen: tf.Tensor) -> tf.Tensor:
        return tf.random.categorical(self._model(seen)[0], 1, tf.int64)[:, 0]

    @staticmethod
    def _shown(observations: np.ndarray) -> np.ndarray:
        """Return observations with the stack last, [N, 84, 84, 4], as a Keras model on a CPU takes them."""
        return np.ascontiguousarray(np.moveaxis(observations, 1, -1))


def rate(play: Callable[[], None], frames: int) -> float:
    """Return the frames per second of a function that plays a number of frames."""
    began = time.perf_counter()
    play()
    return frames / (time.perf_counter() - began)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.peers.collecting")
    parser.add_argument("--game", default="pong")
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--batches", type=int, default=60, help="of a measurement")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    pool = EnvPool(given.game, given.envs, protocol="gymnasium")
    pool.reset()
    learner = Learner(pool, STEPS, 10**6)
    theirs = OnVector(given.game, learner, given.envs)
    frames = given.batches * given.envs * STEPS * pool.frame_skip
    ours = {"collecting": learner.collect, "collecting and learning": learner.train}
    for what, own in ours.items():
        learns = what != "collecting"
        own(tf.constant(1)), theirs.play(1, learns)  # graphs are made
        pairs = [
            (
                rate(lambda own=own: own(tf.constant(given.batches)), frames),  # type: ignore[misc]
                rate(lambda learns=learns: theirs.play(given.batches, learns), frames),  # type: ignore[misc]
            )
            for _ in range(given.rounds)
        ]
        ratios = [mine / other for mine, other in pairs]
        medians = [statistics.median(each) for each in zip(*pairs, strict=True)]
        print(
            f"{what}: EnvPool {medians[0]:,.0f} frames/s, AtariVectorEnv {medians[1]:,.0f}; "
            f"{statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
