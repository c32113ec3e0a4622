"""Deep Q-learning with a Keras model: environments, replay buffer and updates are one TensorFlow graph.

    python -m experiments.examples.dqn [--env pong] [--frames 8000000] [--seed 0] [--out CSV]

The algorithm is that of Mnih et al. 2015 with the double estimate of van Hasselt et al. 2016, the smaller network of
a2c.py, and a replay buffer in a tf.Variable: 16 environments, a batch of 64 per step of all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import keras
import tensorflow as tf
import typer

from experiments.examples.a2c import Scores, features, make_pool, train
from neuroevo.tf import EnvPool

_DISCOUNT = 0.99
_BATCH = 64
_GREEDY = 0.01  # final share of random actions


def q_network(pool: EnvPool) -> keras.Model:
    """Return the model, which predicts the values of all actions, [K, num_actions]."""
    screens = keras.Input(pool.observation_shape, dtype="uint8")
    return keras.Model(screens, keras.layers.Dense(pool.num_actions)(features(screens)))


class Learner:
    """Learner with its graph and the variables that persist between calls.

    Args:
        pool: The N environments.
        length: Capacity of the replay buffer in steps of each environment.
        learning_starts: Steps of all environments before the first update.
        explored: Steps after which the share of random actions has fallen from 1 to 0.01.
        target_every: Steps between copies of the network to the target network.
    """

    def __init__(self, pool: EnvPool, length: int, learning_starts: int, explored: int, target_every: int):
        self._pool, self._length = pool, length
        self._starts, self._explored, self._target_every = learning_starts, explored, target_every
        self.model, self._target = q_network(pool), q_network(pool)
        self._optimizer = keras.optimizers.Adam(1e-4, epsilon=1.5e-4)
        self._optimizer.build(self.model.trainable_variables)
        self._scores, self._step = Scores(pool.num_envs), tf.Variable(0)
        places = length * pool.num_envs
        self._observations = tf.Variable(tf.zeros([places, *pool.observation_shape], tf.uint8), trainable=False)
        self._actions = tf.Variable(tf.zeros([places], tf.int32), trainable=False)
        self._rewards = tf.Variable(tf.zeros([places]), trainable=False)
        self._ends = tf.Variable(tf.zeros([places]), trainable=False)

    @tf.function
    def train(self, updates: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Step all environments and learn; return the sum of returns and the number of the episodes that ended."""
        total, episodes = tf.zeros([]), tf.zeros([], tf.int32)
        for _ in tf.range(updates):
            returns, ended = self._play()
            total, episodes = total + returns, episodes + ended
            if self._step >= self._starts:
                self._learn()
            if self._step % self._target_every == 0:
                for theirs, own in zip(self._target.variables, self.model.variables, strict=True):
                    theirs.assign(own)
            self._step.assign_add(1)
        return total, episodes

    def _play(self) -> tuple[tf.Tensor, tf.Tensor]:
        envs = self._pool.num_envs
        observations = self._pool.observe()
        greedy = tf.argmax(self.model(observations), -1, tf.int32)
        explored = tf.minimum(tf.cast(self._step, tf.float32) / self._explored, 1.0)
        random = tf.random.uniform([envs]) < 1 - (1 - _GREEDY) * explored
        actions = tf.where(random, tf.random.uniform([envs], 0, self._pool.num_actions, tf.int32), greedy)
        step = self._pool.step(actions)
        places = self._step % self._length * envs + tf.range(envs)
        for variable, values in (
            (self._observations, observations),
            (self._actions, actions),
            (self._rewards, tf.sign(step.rewards)),
            (self._ends, tf.cast(step.terminated | step.truncated, tf.float32)),
        ):
            variable.scatter_update(tf.IndexedSlices(values, places))
        return self._scores.add(step.rewards, step.terminated | step.truncated)

    def _learn(self) -> None:
        envs = self._pool.num_envs
        known = tf.minimum(self._step, self._length - 1)  # without the last step, which has no next observation
        ages = tf.random.uniform([_BATCH], 1, known + 1, tf.int32)
        places = (self._step - ages) % self._length * envs + tf.random.uniform([_BATCH], 0, envs, tf.int32)
        after = tf.gather(self._observations, (places + envs) % (self._length * envs))
        best = tf.argmax(self.model(after), -1, tf.int32)
        follows = tf.gather(self._target(after), best, batch_dims=1) * (1 - tf.gather(self._ends, places))
        goal = tf.gather(self._rewards, places) + _DISCOUNT * follows
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            values = self.model(tf.gather(self._observations, places))
            chosen = tf.gather(values, tf.gather(self._actions, places), batch_dims=1)
            loss = keras.losses.huber(tf.stop_gradient(goal), chosen)
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def dqn(
    env: Annotated[str, typer.Option(help="A game.")] = "pong",
    frames: Annotated[int, typer.Option(min=1, help="Total number of emulator frames.")] = 8_000_000,
    num_envs: Annotated[int, typer.Option("--envs", min=1)] = 16,
    buffer: Annotated[int, typer.Option(min=100, help="Observations in the replay buffer, 28 kB each.")] = 64_000,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="CSV for the returns.")] = None,
) -> list[tuple[int, float, int]]:
    """Train; return a row per call of the graph: the frames so far, the mean return, and the number of episodes."""
    pool, length = make_pool(env, num_envs, seed), max(buffer // num_envs, 2)

    def make_learner(updates: int) -> Learner:
        starts = min(10_000 // num_envs, length - 1, updates // 10)
        return Learner(pool, length, starts, explored=updates // 8 + 1, target_every=max(8_000 // num_envs, 1))

    return train(pool, make_learner, frames, 1, out)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(dqn)
    app()
