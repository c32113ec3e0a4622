"""What a task of Brax is made of, read from its model and its environment."""

from __future__ import annotations

from typing import Any

from neuroevo.accelerated.brax_simulator import shared_simulator


def facts(task: str, backend: str) -> dict[str, Any]:
    """Read a task.

    Args:
        task: Brax's name of it.
        backend: Its physics.

    Returns:
        model (MuJoCo's, as Brax compiled it: mujoco.MjModel), physics_steps per step, observation_size, action_size,
        and options: the numbers of the environment's reward, ends and start, under Gymnasium's names.
    """
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
