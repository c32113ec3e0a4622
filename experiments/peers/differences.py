"""Differences between a MuJoCo task of Gymnasium, which the C++ lanes play, and Brax's task of the same robot.

python -m experiments.peers.differences hopper ant > differences.md

All values are read from the environments themselves: both models as compiled by MuJoCo, the options of our task, and
the attributes of Brax's environment.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import mujoco
import numpy as np

from neuroevo.envs import registry
from neuroevo.envs.brax import COUNTERPARTS
from neuroevo.envs.mujoco import model_path
from neuroevo.native.env_pool import EnvPool

_SAME = ("frame_skip", "xml_file", "max_episode_steps", "main_body")  # options in other rows, or only in neuroevo


def differences(task: str, backend: str) -> Iterator[tuple[str, str, str]]:
    """Compare a task.

    Args:
        task: Brax's name of the task.
        backend: Brax's name of the physics engine.

    Yields:
        A property, its value in our task, and its value in Brax's. Some rows may be equal.
    """
    theirs = _facts(task, backend)
    played = registry.find(COUNTERPARTS[task].name)
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


def _facts(task: str, backend: str) -> dict[str, Any]:
    """Read a task.

    Args:
        task: Brax's name of the task.
        backend: Brax's name of the physics engine.

    Returns:
        model (MuJoCo's, as Brax compiled it: mujoco.MjModel), physics_steps per step, observation_size, action_size,
        and options: the numbers of the environment's reward, ends and start, under Gymnasium's names.
    """
    from neuroevo.accelerated.brax_simulator import shared_simulator

    simulator = shared_simulator(task, backend)
    environment = simulator.environment
    named = {key.removeprefix("_"): value for key, value in vars(environment).items()}
    return {
        "model": environment.sys.mj_model,
        "time_step": float(environment.sys.opt.timestep),
        "physics_steps": environment._n_frames,
        "observation_size": simulator.observation_size,
        "action_size": simulator.action_size,
        "options": {key: value for key, value in named.items() if isinstance(value, bool | int | float | tuple | list)},
    }


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
    """Format the sorted distinct numbers, so that equal models have equal texts."""
    return ", ".join(f"{value:.4g}" for value in np.unique(np.round(np.asarray(values, np.float64), 6)))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, tuple | list):
        return " to ".join(f"{each:g}" for each in value)
    return str(value) if isinstance(value, bool | str) else f"{value:g}"


def page(tasks: Sequence[str], backend: str) -> str:
    """Format what differs in Markdown, task by task; rows that are equal are left out.

    Args:
        tasks: Brax's names of the tasks.
        backend: Brax's name of the physics engine.
    """
    text = [
        "# What differs between our MuJoCo tasks and Brax's",
        "",
        "Our C++ lanes play Gymnasium's tasks with MuJoCo, in float64. Brax plays its own tasks of the same robots,",
        f"here with the physics `{backend}`, in float32. Everything below is read from what is played. `brax_model`",
        "plays our task with Brax's file of the robot: of the rows about the model Brax's hold for it, of those about",
        "observations, rewards and ends ours.",
    ]
    for task in tasks:
        rows = list(differences(task, backend))
        text += ["", f"## {task}", "", "| | neuroevo (Gymnasium) | Brax |", "|---|---|---|"]
        text += [f"| {what} | {own} | {theirs} |" for what, own, theirs in rows if own != theirs]
        text += ["", f"Equal: {', '.join(what for what, own, theirs in rows if own == theirs)}."]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    from neuroevo.accelerated.start import start_jax

    start_jax(1)
    print(page(sys.argv[1:], "mjx"), end="")
