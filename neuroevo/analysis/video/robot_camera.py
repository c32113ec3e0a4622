"""Pictures of a MuJoCo robot from the numbers of its joints, without a display."""

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
# With a graphics card, and without one; MuJoCo's own choice where the user has made one.
_LIBRARIES = ("egl", "osmesa")


class RobotCamera:
    """Draws a model in a process of its own; use it as a context manager.

    Attributes:
        timestep: Of the model's physics, in seconds.
        library: What draws, as MUJOCO_GL names it.
    """

    def __init__(self, model: Path, height: int, width: int):
        """Start the process, with the first graphics library that works.

        Args:
            model: The MuJoCo model's file.
            height: Of a picture, in pixels.
            width: Of a picture, in pixels.

        Raises:
            UserError: None works; the message says why, and what to install.
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
                start_new_session=True,  # Ctrl-C reaches only the caller, who handles it
            )
            assert self._process.stdout is not None  # a pipe was asked for
            line = self._process.stdout.readline()
            if line:
                self.library, facts = library, json.loads(line)
                self.timestep, self._numbers = float(facts["timestep"]), int(facts["numbers"])
                return
            failed.append(f"{library}: {self._reason()}")
            self.close()
        raise UserError(
            "videos of robots need a graphics library that draws without a display, and none works: "
            f"{'; '.join(failed)}. On Debian or Ubuntu: apt-get install -y libosmesa6"
        )

    def __enter__(self) -> RobotCamera:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def picture(self, state: np.ndarray) -> np.ndarray:
        """Draws the robot.

        Args:
            state: Positions, then velocities of its joints, float64 [nq + nv].

        Returns:
            RGB, uint8 [height, width, 3].

        Raises:
            ValueError: The model has another number of joints.
            RuntimeError: The process ended; the message is its own.
        """
        if state.shape != (self._numbers,):
            raise ValueError(f"the state has shape {list(state.shape)}, expected [{self._numbers}]")
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # pipes were asked for
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
