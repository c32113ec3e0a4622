"""Brax environment for the user's own MuJoCo model on MJX; options define its reward and termination."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from brax.envs.base import PipelineEnv, State
from brax.io import mjcf

from neuroevo.accelerated.brax_simulator import BraxSimulator
from neuroevo.accelerated.simulator import quiet
from neuroevo.core.errors import UserError
from neuroevo.core.problems import ConfigError, Problem, did_you_mean
from neuroevo.envs.mjx import MjxOptions, MjxRobot


class MjxTask(PipelineEnv):  # type: ignore[misc] # Brax has no types
    """Brax environment of a MuJoCo model.

    The observation consists of positions, from index `excluded_positions`, and velocities. Actions are scaled to the
    actuators' control ranges. The reward of a step is

        forward_reward_weight * speed of the main body along x + healthy_reward + sum of weight * sensor
        - ctrl_cost_weight * sum of squared controls,

    and the episode ends when the main body's height is outside healthy_z_range.
    """

    def __init__(self, options: MjxOptions):
        """Load the model.

        Args:
            options: The model's file and the task's parameters.

        Raises:
            UserError: MuJoCo or MJX cannot use the model.
            ConfigError: The model lacks a body or a sensor that the options name.
        """
        path = Path(str(options.xml_file)).expanduser()
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
            system = mjcf.load_model(model)
        except (ValueError, NotImplementedError, RuntimeError) as error:
            raise UserError(f"MJX cannot simulate the model {path}: {error}") from error
        if not model.nu:
            raise UserError(f"the model {path} has no actuators, expected at least one")
        super().__init__(system, "mjx", options.frame_skip)
        self._options = options
        self._body = _index(model, mujoco.mjtObj.mjOBJ_BODY, options.main_body, "main_body") if options.main_body else 1
        sensors = [name for name, _ in options.sensor_reward_weights]
        key = "sensor_reward_weights"
        self._sensors = np.array([_sensor_address(model, name, key) for name in sensors], np.int32)
        self._weights = np.array([weight for _, weight in options.sensor_reward_weights], np.float32)
        self._excluded = _unobserved(model) if options.excluded_positions is None else options.excluded_positions
        if self._excluded > model.nq:
            reason = f"expected at most {model.nq}, the model's number of positions"
            raise ConfigError([Problem("env.options.excluded_positions", reason, self._excluded)])
        limited = model.actuator_ctrllimited.astype(bool)
        low, high = np.where(limited[:, None], model.actuator_ctrlrange, [-1.0, 1.0]).T
        self._middle, self._half = ((high + low) / 2).astype(np.float32), ((high - low) / 2).astype(np.float32)

    def reset(self, rng: jax.Array) -> State:
        """Return the model's initial state with noise, as Brax's Env describes."""
        keys = jax.random.split(rng)
        noise = self._options.reset_noise_scale
        sizes = self.sys.q_size(), self.sys.qd_size()
        moved, speed = (
            jax.random.uniform(key, (size,), minval=-noise, maxval=noise) for key, size in zip(keys, sizes, strict=True)
        )
        physics = self.pipeline_init(self.sys.init_q + moved, speed)
        nothing = jnp.zeros(())
        return State(physics, self._observation(physics), nothing, nothing, {})

    def step(self, state: State, action: jax.Array) -> State:
        """Step `frame_skip` times, as Brax's Env describes."""
        options, before = self._options, state.pipeline_state
        control = self._middle + self._half * action
        after = self.pipeline_step(before, control)
        place = after.xpos[self._body]
        reward = options.forward_reward_weight * (place[0] - before.xpos[self._body, 0]) / self.dt
        reward += options.healthy_reward - options.ctrl_cost_weight * jnp.sum(control * control)
        if len(self._sensors):
            reward += jnp.dot(after.sensordata[self._sensors], self._weights)
        done = jnp.zeros(())
        if options.healthy_z_range is not None:
            low, high = options.healthy_z_range
            done = 1.0 - ((low <= place[2]) & (place[2] <= high))
        return state.replace(pipeline_state=after, obs=self._observation(after), reward=reward, done=done)

    def _observation(self, physics: mujoco.mjx.Data) -> jax.Array:
        return jnp.concatenate([physics.qpos[self._excluded :], physics.qvel])


def _unobserved(model: mujoco.MjModel) -> int:
    """Return the number of positions along the ground, which Gymnasium's tasks leave out of observations."""
    if model.njnt and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        return 2
    joints = zip(model.jnt_type, model.jnt_limited, model.jnt_axis, strict=True)
    along = (kind == mujoco.mjtJoint.mjJNT_SLIDE and not limited and not axis[2] for kind, limited, axis in joints)
    return sum(1 for _ in itertools.takewhile(bool, along))


def _sensor_address(model: mujoco.MjModel, name: str, key: str) -> int:
    sensor = _index(model, mujoco.mjtObj.mjOBJ_SENSOR, name, key)
    if model.sensor_dim[sensor] != 1:
        reason = f"the sensor '{name}' has {model.sensor_dim[sensor]} values, expected a sensor with one value"
        raise ConfigError([Problem(f"env.options.{key}", reason, name)])
    return int(model.sensor_adr[sensor])


def _index(model: mujoco.MjModel, kind: mujoco.mjtObj, name: str, key: str) -> int:
    index = mujoco.mj_name2id(model, kind, name)
    if index < 0:
        names = list(_names(model, kind))
        what = "body" if kind == mujoco.mjtObj.mjOBJ_BODY else "sensor"
        has = f"it has {', '.join(names)}" if names else f"it has no named {what}"
        reason = f"the model has no {what} '{name}'{did_you_mean(name, names)} ({has})"
        raise ConfigError([Problem(f"env.options.{key}", reason, name)])
    return index


def _names(model: mujoco.MjModel, kind: mujoco.mjtObj) -> Iterable[str]:
    count = model.nbody if kind == mujoco.mjtObj.mjOBJ_BODY else model.nsensor
    return filter(None, (mujoco.mj_id2name(model, kind, index) for index in range(count)))


def make_simulator(env: MjxRobot) -> BraxSimulator:
    """Return the simulator of a robot; the object is cached by the options and the contents of the model's file.

    Args:
        env: The robot.

    Raises:
        UserError: The model cannot be read or simulated.
        ConfigError: The model lacks a body or a sensor that the options name.
    """
    file = env.file
    assert file is not None  # the environment's name contains it
    return _simulator(replace(env.options, xml_file=str(file.path)), file.sha256())


@lru_cache(maxsize=4)
def _simulator(options: MjxOptions, sha256: str) -> BraxSimulator:
    with quiet():
        return BraxSimulator(MjxTask(options))
