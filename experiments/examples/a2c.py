"""Advantage actor-critic with a Keras model, whose rollout and update are one TensorFlow graph.

    python -m experiments.examples.a2c [--env pong] [--frames 20000000] [--seed 0] [--out CSV]

The algorithm is A2C, the synchronous form of Mnih et al. 2016, with their smaller network, and with the settings of
OpenAI's Baselines: 16 environments, 5 steps per update, RMSProp. Python calls the graph once per 100 updates and prints
the mean return of the episodes that ended meanwhile.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

import keras
import tensorflow as tf
import typer
from keras.initializers import Orthogonal

from neuroevo.tf import EnvPool

_DISCOUNT = 0.99
_ENTROPY = 0.01  # weight of the entropy bonus
_VALUE = 0.5  # weight of the critic's loss
_CALL = 100  # updates per call of the graph


def features(screens: keras.KerasTensor) -> keras.KerasTensor:
    """Return the 256 features of screens by the smaller network of Mnih et al. 2016."""
    x = keras.layers.Rescaling(1 / 255)(screens)
    for filters, size, stride in ((16, 8, 4), (32, 4, 2)):
        x = keras.layers.Conv2D(filters, size, stride, activation="relu", kernel_initializer=Orthogonal(2**0.5))(x)
    return keras.layers.Dense(256, activation="relu", kernel_initializer=Orthogonal(2**0.5))(keras.layers.Flatten()(x))


def actor_critic(pool: EnvPool) -> keras.Model:
    """Return the model, which maps observations of the pool to logits [K, num_actions] and values [K, 1]."""
    screens = keras.Input(pool.observation_shape, dtype="uint8")
    x = features(screens)
    logits = keras.layers.Dense(pool.num_actions, kernel_initializer=Orthogonal(0.01))(x)
    return keras.Model(screens, [logits, keras.layers.Dense(1, kernel_initializer=Orthogonal(1.0))(x)])


class Scores:
    """Accumulator of episode returns in a graph.

    Args:
        num_envs: Number of environments, N.
    """

    def __init__(self, num_envs: int):
        self._playing = tf.Variable(tf.zeros([num_envs]))  # returns of the current episodes

    def add(self, rewards: tf.Tensor, ended: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Add the rewards of a step [N]; return the sum of returns and the number of the episodes that ended [N]."""
        scores = self._playing + rewards
        self._playing.assign(tf.where(ended, 0.0, scores))
        return tf.reduce_sum(tf.where(ended, scores, 0.0)), tf.math.count_nonzero(ended, dtype=tf.int32)


class Batch(NamedTuple):
    """Batch of an update: T steps of N environments.

    Attributes:
        observations: uint8 [T, N, *observation_shape].
        actions: int32 [T, N].
        returns: float32 [T, N], discounted sums of clipped rewards, bootstrapped with the last value.
    """

    observations: tf.Tensor
    actions: tf.Tensor
    returns: tf.Tensor


def discounted(rewards: Sequence[tf.Tensor], ends: Sequence[tf.Tensor], values: tf.Tensor) -> list[tf.Tensor]:
    """Return discounted sums of rewards, T tensors [N], to the ends of episodes or up to values [N] after step T."""
    returns: list[tf.Tensor] = []
    for reward, ended in zip(reversed(rewards), reversed(ends), strict=True):
        values = reward + _DISCOUNT * tf.where(ended, 0.0, values)
        returns.insert(0, values)
    return returns


class Learner:
    """Learner with its graph and the variables that persist between calls.

    Args:
        pool: Environments.
        steps: Steps of each environment per update.
        updates: Updates after which the learning rate is zero.
    """

    def __init__(self, pool: EnvPool, steps: int, updates: int):
        self._pool, self._steps = pool, steps
        self.model = actor_critic(pool)
        rate = keras.optimizers.schedules.PolynomialDecay(7e-4, updates, 0.0)
        # Keras adds epsilon under the square root, where 1e-5 would exceed the squared gradients of dense layers.
        self._optimizer = keras.optimizers.RMSprop(rate, rho=0.99, epsilon=1e-10, global_clipnorm=0.5)
        self._optimizer.build(self.model.trainable_variables)
        self._scores = Scores(pool.num_envs)

    @tf.function
    def train(self, updates: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Collect and learn; return the sum of returns and the number of the episodes that ended."""
        total, episodes = tf.zeros([]), tf.zeros([], tf.int32)
        for _ in tf.range(updates):
            batch, returns, ended = self._collect()
            self.learn(batch)
            total, episodes = total + returns, episodes + ended
        return total, episodes

    @tf.function
    def collect(self, batches: tf.Tensor) -> None:
        """Collect without learning, to measure the throughput."""
        for _ in tf.range(batches):
            self._collect()

    def _collect(self) -> tuple[Batch, tf.Tensor, tf.Tensor]:
        observations, actions, rewards, ends = [], [], [], []
        total, episodes = tf.zeros([]), tf.zeros([], tf.int32)
        for _ in range(self._steps):
            observations.append(self._pool.observe())
            logits, _ = self.model(observations[-1])
            actions.append(tf.random.categorical(logits, 1, tf.int32)[:, 0])
            step = self._pool.step(actions[-1])
            ended = step.terminated | step.truncated
            score, count = self._scores.add(step.rewards, ended)
            total, episodes = total + score, episodes + count
            rewards.append(tf.sign(step.rewards))
            ends.append(ended)
        returns = discounted(rewards, ends, self.model(self._pool.observe())[1][:, 0])
        return Batch(tf.stack(observations), tf.stack(actions), tf.stack(returns)), total, episodes

    def learn(self, batch: Batch) -> None:
        """Make one update."""
        observations = tf.reshape(batch.observations, [-1, *self._pool.observation_shape])
        actions, returns = tf.reshape(batch.actions, [-1]), tf.reshape(batch.returns, [-1])
        variables = self.model.trainable_variables
        with tf.GradientTape() as tape:
            logits, values = self.model(observations)
            log_probabilities = tf.nn.log_softmax(logits)
            chosen = tf.gather(log_probabilities, actions, batch_dims=1)
            entropy = -tf.reduce_sum(tf.exp(log_probabilities) * log_probabilities, -1)
            advantages = returns - values[:, 0]
            actor = -tf.reduce_mean(chosen * tf.stop_gradient(advantages) + _ENTROPY * entropy)
            loss = actor + _VALUE * tf.reduce_mean(advantages**2)
        self._optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def a2c(
    env: Annotated[str, typer.Option(help="A game.")] = "pong",
    frames: Annotated[int, typer.Option(min=1, help="Total number of emulator frames.")] = 20_000_000,
    num_envs: Annotated[int, typer.Option("--envs", min=1)] = 16,
    steps: Annotated[int, typer.Option(min=1, help="Steps of each environment per update.")] = 5,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="CSV for the returns.")] = None,
) -> list[tuple[int, float, int]]:
    """Train; return a row per call of the graph: the frames so far, the mean return, and the number of episodes."""
    pool = make_pool(env, num_envs, seed)
    return train(pool, lambda updates: Learner(pool, steps, updates), frames, steps, out)


class Trains(Protocol):
    """Protocol of a learner in a graph."""

    def train(self, updates: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Make updates; return the sum of the returns and the number of the episodes that ended."""


def make_pool(env: str, num_envs: int, seed: int) -> EnvPool:
    """Seed Keras and return the environments."""
    keras.utils.set_random_seed(seed)
    return EnvPool(env, num_envs, seed=seed)


def train(
    pool: EnvPool, make_learner: Callable[[int], Trains], frames: int, steps: int, out: Path | None
) -> list[tuple[int, float, int]]:
    """Train, 100 updates per call of the graph; print, write as CSV, and return the returns.

    Args:
        pool: Environments.
        make_learner: Function that makes the learner for a number of updates.
        frames: Total number of emulator frames.
        steps: Steps of each environment per update.
        out: CSV to write, or None.

    Returns:
        A row per call: the frames so far, the mean return, and the number of the episodes that ended.
    """
    per_update = pool.num_envs * steps * pool.frame_skip
    updates = -(-frames // per_update)
    learner = make_learner(updates)
    pool.reset()
    rows, began = [], time.monotonic()
    for done in range(0, updates, _CALL):
        total, episodes = learner.train(tf.constant(min(_CALL, updates - done)))
        played = min(done + _CALL, updates) * per_update
        mean = float(total) / int(episodes) if int(episodes) else float("nan")
        rows.append((played, mean, int(episodes)))
        rate = played / (time.monotonic() - began)
        print(f"{played:12,} frames, {rate:7,.0f} per second, mean return {mean:7.2f} of {int(episodes)}", flush=True)
    if out is not None:
        with out.open("w", newline="") as file:
            csv.writer(file).writerows([("frames", "mean_return", "episodes"), *rows])
    return rows


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(a2c)
    app()
