"""TensorFlow graph that plays one lane, without executing Python per step.

The graph refills the slots, then loops over observing, forwarding, acting, stepping and recording until slots need new
episodes, and repeats this until the queue is closed.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from neuroevo.rollout.tensorflow.ops import load_ops


@functools.cache
def lane_function(
    dtype: tf.DType,
    shape: tuple[int, ...],
    action_dtype: tf.DType,
    prepares: bool,
    recurrent: bool,
) -> tf.types.experimental.ConcreteFunction:
    """Create the graph that plays one lane until the queue is closed, for observations and actions of these dtypes.

    Networks receive uint8 observations, or normalized float32 observations. prepares: whether networks have vbn layers.
    recurrent: whether they have lstm layers; a slot then uses the state with its number.

    The handles are arguments of the graph: a graph that captured them would keep the rows in memory until Python's
    garbage collector runs.
    """
    ops = load_ops()
    vector, scalar, handle = tf.TensorShape([None]), tf.TensorShape([]), tf.TensorSpec([], tf.resource)

    @tf.function(  # type: ignore[untyped-decorator]  # TensorFlow ships no types
        autograph=False, input_signature=[tf.TensorSpec([], tf.int64), handle, handle, handle]
    )
    def run(lane: tf.Tensor, env_pool: tf.Tensor, population: tf.Tensor, queue: tf.Tensor) -> tf.Tensor:
        def refill() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            take = ops.episode_queue_take(queue, lane)
            mutations = (
                take.perturb_dst,
                take.perturb_src,
                take.perturb_seeds,
                take.perturb_scales,
                take.perturb_spreads,
            )
            assign = ops.population_assign(population, take.assign_rows, take.assign_networks, take.assign_thetas)
            with tf.control_dependencies([assign]):
                init = ops.population_init(population, take.init_rows, take.init_networks, take.init_seeds)
            with tf.control_dependencies([init]):
                perturb = ops.population_perturb(population, *mutations)
            filled = perturb
            if prepares:  # repeated rows cost nothing
                rows = tf.concat([take.assign_rows, take.init_rows, take.perturb_dst], 0)
                with tf.control_dependencies([perturb]):
                    filled = ops.population_prepare(population, rows)
            if recurrent:
                with tf.control_dependencies([filled]):
                    filled = ops.population_clear_states(population, take.slots)
            episodes = take.slots, take.seeds, take.max_frames, take.normalizers
            reset = ops.env_reset(env_pool, *episodes)
            with tf.control_dependencies([filled, reset]):
                return tf.identity(take.live_slots), tf.identity(take.live_rows), tf.identity(take.closed)

        def step(slots: tf.Tensor, rows: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            if dtype == tf.float32:
                observations = ops.env_normalized_observation(env_pool, slots, shape=shape)
            else:
                observations = ops.env_observation(env_pool, slots, dtype=dtype, shape=shape)
            outputs = ops.population_forward_slots(population, rows, observations, slots)
            actions = ops.env_actions(env_pool, outputs, T=action_dtype)
            rewards, dones, _ = ops.env_step(env_pool, slots, actions)
            put = ops.episode_queue_put(queue, env_pool, lane, slots, rewards, dones)
            return put.live_slots, put.live_rows, put.refill

        def play(slots: tf.Tensor, rows: tf.Tensor, closed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            """Step until slots need episodes. It is a loop since TensorFlow visits every op of a branch not taken."""
            *_, ended = tf.while_loop(
                lambda slots, rows, refill: tf.logical_not(refill),
                step,
                (slots, rows, closed),
                shape_invariants=(vector, vector, scalar),
                parallel_iterations=1,
            )
            with tf.control_dependencies([ended]):
                return refill()

        with tf.device("/cpu:0"):
            *_, running = tf.while_loop(
                lambda slots, rows, closed: tf.logical_not(closed),
                play,
                refill(),
                shape_invariants=(vector, vector, scalar),
                parallel_iterations=1,
            )
            return running

    return run.get_concrete_function()
