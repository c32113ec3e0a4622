"""A process that draws a MuJoCo model: camera_process.py MODEL HEIGHT WIDTH, which knows nothing of neuroevo.

How MuJoCo draws follows from MUJOCO_GL when its package is imported, and a graphics library that does not work may end
the process; so it is one of its own. It writes a line of JSON with `timestep`, in seconds, and `numbers`, how many a
state has. Then it reads states, float64 [nq + nv], positions and velocities, and writes a picture of each, uint8
[height, width, 3], until its input ends.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Draws until the input ends."""
    path, height, width = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    pictures = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print
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
        renderer.render()  # what does not work fails here
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


def _camera(mujoco: Any, model: Any, data: Any) -> Any:  # the package that main() imports, and what it makes
    """Return the model's own tracking camera, as Gymnasium's models name it, or a view of all but floors."""
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
