"""Rendering of a MuJoCo robot from the state of its joints, without a display."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from neuroevo.core.errors import UserError

_PROGRAM = Path(__file__).with_name("camera_process.py")
# EGL uses a graphics card, OSMesa the CPU; the user's MUJOCO_GL has precedence.
_LIBRARIES = ("egl", "osmesa")


class RobotCamera:
    """Renderer of a model in a separate process; use it as a context manager.

    Attributes:
        timestep: Time step of the model's physics, in seconds.
        library: The graphics library, a value of MUJOCO_GL.
    """

    def __init__(self, model: Path, height: int, width: int):
        """Start the process, with the first graphics library that works.

        Args:
            model: The MuJoCo model's file.
            height: Height of the pictures, in pixels.
            width: Width of the pictures, in pixels.

        Raises:
            UserError: No graphics library works; the message contains the reasons and what to install.
        """
        self._shape, failed = (height, width, 3), []
        chosen = os.environ.get("MUJOCO_GL")
        for library in [chosen] if chosen else _LIBRARIES:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - close() closes it
            self._process = subprocess.Popen(
                [sys.executable, str(_PROGRAM), str(model), str(height), str(width)],
                env={**os.environ, "MUJOCO_GL": library},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C reaches only the parent process, which handles it
            )
            assert self._process.stdout is not None  # Popen opened a pipe
            line = self._process.stdout.readline()
            if line:
                self.library, facts = library, json.loads(line)
                self.timestep, self._numbers = float(facts["timestep"]), int(facts["numbers"])
                return
            failed.append(f"{library}: {self._reason()}")
            self.close()
        raise UserError(
            "videos of robots require a graphics library that renders without a display, but none works: "
            f"{'; '.join(failed)}. On Debian or Ubuntu: apt-get install -y libosmesa6"
        )

    def __enter__(self) -> RobotCamera:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def picture(self, state: np.ndarray) -> np.ndarray:
        """Render the robot.

        Args:
            state: Positions and velocities of its joints, float64 [nq + nv].

        Returns:
            RGB, uint8 [height, width, 3].

        Raises:
            ValueError: The size of the state does not match the model.
            RuntimeError: The process ended; the message contains the last line of its standard error.
        """
        if state.shape != (self._numbers,):
            raise ValueError(f"the state has shape {list(state.shape)}, expected [{self._numbers}]")
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # Popen opened pipes
        try:
            stdin.write(np.ascontiguousarray(state, np.float64).tobytes())
            stdin.flush()
            pixels = stdout.read(int(np.prod(self._shape)))
        except BrokenPipeError:
            pixels = b""
        if len(pixels) < np.prod(self._shape):
            raise RuntimeError(f"the process that draws the robot ended: {self._reason()}")
        return np.frombuffer(pixels, np.uint8).reshape(self._shape)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _reason(self) -> str:
        """Return the last line that the process wrote to its standard error."""
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with {code}"
