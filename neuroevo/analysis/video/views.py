"""What a video shows of the slots of a pool: the screens of games, or pictures of robots."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from typing_extensions import override

from neuroevo.analysis.video.robot_camera import RobotCamera
from neuroevo.native.env_pool import EnvPool

CONSOLE_FPS = 60  # emulator frames of an Atari console
_ROBOT_FPS = 60  # at most: physics is finer
_ROBOT_SIDE = 240  # pixels, before enlargement


class View(ABC):
    """Pictures of slots; use it as a context manager.

    Attributes:
        shape: Of a picture, (height, width, 3).
        scale: How many pixels of the video a side a picture's pixel becomes.
        steps_per_s: How many steps make a second of real time.
        stride: The steps from one picture to the next.
    """

    shape: tuple[int, ...]
    scale: int
    steps_per_s: float
    stride: int = 1

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - most have nothing to close
        pass

    @abstractmethod
    def pictures(self, slots: np.ndarray) -> np.ndarray:
        """RGB of slots [K], uint8 [K, *shape]."""


class Screens(View):
    """The screens that the environments have themselves."""

    def __init__(self, pool: EnvPool, scale: int, steps_per_s: float | None):
        """Make a view that does not draw yet.

        Args:
            pool: The environments, which can be rendered.
            scale: How many pixels a side a screen's pixel becomes.
            steps_per_s: In real time; None: as many as the frame skip makes of a console's.
        """
        self._pool, self.shape, self.scale = pool, pool.render_shape, scale
        self.steps_per_s = CONSOLE_FPS / pool.frame_skip if steps_per_s is None else steps_per_s

    @override
    def pictures(self, slots: np.ndarray) -> np.ndarray:
        return self._pool.render(slots)


class Robots(View):
    """A robot from its model's own camera, drawn from the numbers of its joints."""

    def __init__(self, pool: EnvPool, model: Path, scale: int, every_step: bool):
        """Start the renderer.

        Args:
            pool: The environments, which have states.
            model: The robot's MuJoCo model.
            scale: A picture is 240 times this wide and high.
            every_step: Whether each step has a picture; otherwise as many are left out as make at most 60 a second.

        Raises:
            UserError: No graphics library works.
        """
        side = _ROBOT_SIDE * scale
        self._pool, self.shape, self.scale = pool, (side, side, 3), 1
        self._camera = RobotCamera(model, side, side)
        self.steps_per_s = 1 / (self._camera.timestep * pool.frame_skip)
        self.stride = 1 if every_step else math.ceil(self.steps_per_s / _ROBOT_FPS)

    @override
    def __exit__(self, *_: object) -> None:
        self._camera.close()

    @override
    def pictures(self, slots: np.ndarray) -> np.ndarray:
        return np.stack([self._camera.picture(state) for state in self._pool.state(slots)])
