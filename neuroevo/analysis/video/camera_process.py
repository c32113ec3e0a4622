"""Render a MuJoCo model in a separate process, without neuroevo: camera_process.py MODEL HEIGHT WIDTH.

MuJoCo selects its renderer by MUJOCO_GL at import, and a broken graphics library may crash the process, hence the
separate one. The process writes a line of JSON with `timestep`, in seconds, and `numbers`, the size nq + nv of a state.
It then reads states, float64 [nq + nv], positions and velocities, and writes a picture of each, uint8 [height, width,
3], until the end of its input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Render states until the end of the input."""
    path, height, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    pictures = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # redirect what libraries print to stderr
    import mujoco
    import numpy as np

    model = mujoco.MjModel.from_xml_path(path)
    model.vis.global_.offheight = max(height, model.vis.global_.offheight)
    model.vis.global_.offwidth = max(width, model.vis.global_.offwidth)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = _camera(mujoco, model, data)
    with mujoco.Renderer(model, height, width) as renderer:
        renderer.update_scene(data, camera)
        renderer.render()  # a broken graphics library fails here
        numbers = model.nq + model.nv
        pictures.write(json.dumps({"timestep": model.opt.timestep, "numbers": numbers}).encode() + b"\n")
        pictures.flush()
        while len(state := sys.stdin.buffer.read(8 * numbers)) == 8 * numbers:
            values = np.frombuffer(state, np.float64)
            data.qpos[:], data.qvel[:] = values[: model.nq], values[model.nq :]
            mujoco.mj_forward(model, data)
            renderer.update_scene(data, camera)
            pictures.write(renderer.render().tobytes())
            pictures.flush()


def _camera(mujoco: Any, model: Any, data: Any) -> Any:  # Any, since main() imports mujoco
    """Return "track", the tracking camera of Gymnasium's models, or a camera that shows all geoms except planes."""
    if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "track") >= 0:
        return "track"
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    shown = model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    if shown.any():
        reach = model.geom_rbound[shown, None]
        low, high = (data.geom_xpos[shown] - reach).min(axis=0), (data.geom_xpos[shown] + reach).max(axis=0)
        camera.lookat[:], camera.distance = (low + high) / 2, 1.3 * (high - low).max()
    return camera


if __name__ == "__main__":
    main()
