"""How a MuJoCo task of Gymnasium, which the C++ lanes play, differs from Brax's of the same robot.

Everything is read from what is played: both models as MuJoCo compiled them, the options of our task, and the numbers
in Brax's environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from neuroevo.accelerated.peers.experiment import Experiment
from neuroevo.comparison.ours import environment
from neuroevo.envs import registry
from neuroevo.envs.mujoco import model_path
from neuroevo.native.env_pool import EnvPool

_SAME = ("frame_skip", "xml_file", "max_episode_steps", "main_body")  # options that other rows tell of, or only we have


def differences(experiment: Experiment) -> Iterator[tuple[str, str, str]]:
    """Compare a task.

    Args:
        experiment: Its task, backend and episode length count.

    Yields:
        What is compared, how it is in our task, and how in Brax's. Some rows may be equal.
    """
    from neuroevo.accelerated.peers.model_facts import facts

    theirs = facts(experiment.task, experiment.backend)
    section = environment("native", experiment, Path())
    played = registry.find(section["name"], section["options"])
    options = vars(played.options)
    model = mujoco.MjModel.from_xml_path(str(model_path(options["xml_file"])))
    pool = EnvPool(played.spec, 1)
    own_steps, own_time = options["frame_skip"], float(model.opt.timestep)

    yield "seconds per physics step", f"{own_time:g}", f"{theirs['time_step']:g}"
    yield "physics steps per step", str(own_steps), str(theirs["physics_steps"])
    yield "seconds per step", f"{own_time * own_steps:g}", f"{theirs['time_step'] * theirs['physics_steps']:g}"
    for (what, own), (_, other) in zip(_model_rows(model), _model_rows(theirs["model"]), strict=True):
        yield what, own, other
    yield "numbers in an observation", str(pool.observation_shape[0]), str(theirs["observation_size"])
    yield "numbers in an action", str(pool.num_actions), str(theirs["action_size"])
    limits = [f"{_numbers(pool.action_low)} to {_numbers(pool.action_high)}", "-1 to 1"]
    yield "what the network's [-1, 1] becomes", limits[0], limits[1]
    for key in sorted({*options, *theirs["options"]} - set(_SAME)):
        if key in options or key in _KNOWN:
            yield key, _text(options.get(key)), _text(theirs["options"].get(key))


_KNOWN = ("healthy_reward", "ctrl_cost_weight", "forward_reward_weight", "contact_cost_weight", "reset_noise_scale")


def _model_rows(model: mujoco.MjModel) -> list[tuple[str, str]]:
    option = model.opt
    colliding = int(np.sum((model.geom_contype != 0) | (model.geom_conaffinity != 0)))
    solver, integrator, cone = mujoco.mjtSolver, mujoco.mjtIntegrator, mujoco.mjtCone
    return [
        ("integrator", integrator(option.integrator).name.removeprefix("mjINT_")),
        ("solver", solver(option.solver).name.removeprefix("mjSOL_")),
        ("solver's iterations, at most", str(option.iterations)),
        ("iterations of its line search, at most", str(option.ls_iterations)),
        ("solver's tolerance", f"{option.tolerance:g}"),
        ("friction cone", cone(option.cone).name.removeprefix("mjCONE_")),
        ("Euler's implicit damping", "no" if option.disableflags & mujoco.mjtDisableBit.mjDSBL_EULERDAMP else "yes"),
        ("bodies, joints, actuators", f"{model.nbody}, {model.njnt}, {model.nu}"),
        ("positions, velocities", f"{model.nq}, {model.nv}"),
        ("geoms that can touch others, of all", f"{colliding} of {model.ngeom}"),
        ("mass, kg", f"{float(np.sum(model.body_mass)):.4g}"),
        ("joints' damping", _numbers(model.dof_damping)),
        ("joints' armature", _numbers(model.dof_armature)),
        ("joints' stiffness", _numbers(model.jnt_stiffness)),
        ("actuators' gear", _numbers(model.actuator_gear[:, 0])),
        (
            "actuators' control range",
            f"{_numbers(model.actuator_ctrlrange[:, 0])} to {_numbers(model.actuator_ctrlrange[:, 1])}",
        ),
        ("friction of geoms (sliding)", _numbers(model.geom_friction[:, 0])),
    ]


def _numbers(values: np.ndarray) -> str:
    """Different numbers in order, so that equal models have equal texts."""
    return ", ".join(f"{value:.4g}" for value in np.unique(np.round(np.asarray(values, np.float64), 6)))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple | list):
        return " to ".join(f"{each:g}" for each in value)
    return str(value) if isinstance(value, bool | str) else f"{value:g}"
