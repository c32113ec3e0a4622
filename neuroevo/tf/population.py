"""Populations of networks that are evaluated inside TensorFlow graphs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import tensorflow as tf
from pydantic import ValidationError

from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, problems_of
from neuroevo.networks.architectures import input_line, to_text
from neuroevo.networks.network import Network
from neuroevo.rollout.tensorflow.ops import load_ops
from neuroevo.rollout.tensorflow.population import OpPopulation
from neuroevo.tf.env_pool import EnvPool


class Population:
    """Networks of one architecture with different weights, as ops of a TensorFlow graph.

    Each network is a row of weights. One call evaluates any subset of rows, each on its own observation. Rows that a
    call does not use have no cost.

    Args:
        pool: Environments that the networks play.
        rows: Number of networks, R; a row allocates memory when it is first written.
        **network: Keys of [network], such as name="large_model", layers=["dense 64", "relu"] or dtype="int8".

    Attributes:
        rows: Number of networks, R.
        size: Number of weights of a network, D.
        network: Layers of the network in text form.

    Raises:
        ConfigError: A key of the network is invalid.
        UserError: The network is recurrent or has vbn layers, which this class does not support.
    """

    def __init__(self, pool: EnvPool, rows: int, **network: Any):
        try:
            chosen = Network(**network)
        except ValidationError as error:
            raise ConfigError(problems_of("network", error, [each.name for each in fields(Network)])) from None
        if chosen.needs_reference:
            raise UserError(f"network {chosen} normalizes by a reference batch, expected one without vbn layers")
        self._dtype = pool.observation_dtype if pool.observation_dtype == tf.uint8 else tf.float32
        observation = input_line(self._dtype.name, pool.observation_shape)
        self.network = to_text(chosen.lines(observation, pool.num_actions, not pool.discrete))
        self._population = OpPopulation([self.network], rows, dtype=chosen.dtype)
        if self._population.recurrent:
            raise UserError(f"network {chosen} is recurrent, expected one without lstm layers")
        self._handle = self._population.handle
        self.rows, (self.size,) = rows, self._population.dimensions

    def initialize(self, rows: tf.Tensor, seeds: tf.Tensor) -> None:
        """Write initial weights.

        Args:
            rows: Indices of rows, int64 [K], all different.
            seeds: Seeds of the weights, int64 [K].
        """
        with tf.device("/cpu:0"):
            load_ops().population_init(self._handle, rows, tf.zeros_like(rows, tf.int32), seeds)

    def assign(self, rows: tf.Tensor, weights: tf.Tensor) -> None:
        """Write given weights.

        Args:
            rows: Indices of rows, int64 [K], all different.
            weights: float32 [K, D].
        """
        with tf.device("/cpu:0"):
            load_ops().population_assign(self._handle, rows, tf.zeros_like(rows, tf.int32), weights)

    def read(self, rows: tf.Tensor) -> tf.Tensor:
        """Return weights, float32 [K, D].

        Args:
            rows: Indices of rows, int64 [K].
        """
        with tf.device("/cpu:0"):
            return load_ops().population_read(self._handle, rows)

    def perturb(self, rows: tf.Tensor, parents: tf.Tensor, seeds: tf.Tensor, scales: tf.Tensor) -> None:
        """Write the weights of parents plus scaled Gaussian noise, in order; later entries can read earlier results.

        Args:
            rows: Indices of the rows to write, int64 [K].
            parents: Indices of the rows to read, int64 [K]; a row may be its own parent.
            seeds: Seeds of the noise, int64 [K]; a seed and a scale define a mutation.
            scales: Standard deviations of the noise, float32 [K].
        """
        with tf.device("/cpu:0"):
            nothing = tf.fill(tf.shape(rows), np.int64(-1))
            load_ops().population_perturb(self._handle, rows, parents, seeds, scales, nothing)

    def forward(self, rows: tf.Tensor, observations: tf.Tensor) -> tf.Tensor:
        """Evaluate networks, each on its own observation.

        Args:
            rows: Indices of rows, int64 [K]; a row may be repeated.
            observations: [K, ...] as EnvPool.observe returns them.

        Returns:
            Outputs, float32 [K, W]. Each depends only on its row and observation and is bit-identical in any batch.
        """
        with tf.device("/cpu:0"):
            return load_ops().population_forward(self._handle, rows, tf.cast(observations, self._dtype))

    def __repr__(self) -> str:
        return f"Population({self.rows} networks of {self.size:,} weights)"
