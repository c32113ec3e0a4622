"""Views of the slots of a pool for videos: screens of games or pictures of robots."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from typing_extensions import override

from neuroevo.analysis.video.robot_camera import RobotCamera
from neuroevo.native.env_pool import EnvPool

CONSOLE_FPS = 60  # frames per second of an Atari console
_ROBOT_FPS = 60  # maximum; physics has more steps per second
_ROBOT_SIDE = 240  # pixels at scale 1


class View(ABC):
    """Base class of views, which make pictures of slots; use it as a context manager.

    Attributes:
        shape: Shape of a picture, (height, width, 3).
        scale: Width and height in the video of each pixel of a picture.
        steps_per_s: Steps per second of real time.
        stride: Number of steps from one picture to the next.
    """

    shape: tuple[int, ...]
    scale: int
    steps_per_s: float
    stride: int = 1

    def __enter__(self) -> View:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - optional to override
        pass

    @abstractmethod
    def pictures(self, slots: np.ndarray) -> np.ndarray:
        """Return RGB pictures of slots [K], uint8 [K, *shape]."""


class Screens(View):
    """View of the screens that the environments render themselves."""

    def __init__(self, pool: EnvPool, scale: int, steps_per_s: float | None):
        """Make the view.

        Args:
            pool: The environments, which can be rendered.
            scale: Width and height in the video of each pixel of a screen.
            steps_per_s: Steps per second of real time; None for a console's frame rate divided by the frame skip.
        """
        self._pool, self.shape, self.scale = pool, pool.render_shape, scale
        self.steps_per_s = CONSOLE_FPS / pool.frame_skip if steps_per_s is None else steps_per_s

    @override
    def pictures(self, slots: np.ndarray) -> np.ndarray:
        return self._pool.render(slots)


class Robots(View):
    """View of robots through their model's camera, rendered from the state of their joints."""

    def __init__(self, pool: EnvPool, model: Path, scale: int, every_step: bool):
        """Start the renderer.

        Args:
            pool: The environments, which have states.
            model: The robot's MuJoCo model.
            scale: Width and height of a picture, in units of 240 pixels.
            every_step: Make a picture of every step; otherwise skip steps to have at most 60 pictures per second.

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
