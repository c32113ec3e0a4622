"""Single environment as a gymnasium.Env for gymnasium.make, implemented as a vector of length 1."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from neuroevo.envs.vector import make_vec


class SingleEnv(gymnasium.Env):
    """Single environment; infos are those of make_vec() without masks.

    Stepping many environments in one call, with make_vec(), is several times faster.

    Args:
        name: Name of the environment, as make_vec() takes it.
        render_mode: None or "rgb_array".
        **options: Other keyword arguments of make_vec(), and options of the environment as in [env.options].

    Raises:
        UserError: The name or an option is unknown or invalid. UserError is a ValueError.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - Gymnasium reads it from the class

    def __init__(self, name: str, render_mode: str | None = None, **options: Any):
        self._vector = make_vec(name, 1, autoreset_mode="Disabled", render_mode=render_mode, **options)
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space
        self.render_mode = render_mode
        self.metadata = {key: value for key, value in self._vector.metadata.items() if key != "autoreset_mode"}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed in [0, 2**63); None continues with the next episode, or draws a seed if none was set before.
            options: None or empty.
        """
        if options:
            raise ValueError(f"options is {options}, expected None: a single environment has none")
        super().reset(seed=seed)
        observations, infos = self._vector.reset(seed=seed)
        return observations[0], _of_one(infos)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Step the environment with an action of its action space."""
        observations, rewards, terminated, truncated, infos = self._vector.step(np.asarray(action)[None])
        return observations[0], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), _of_one(infos)

    def render(self) -> np.ndarray | None:
        """Return the screen, uint8 [height, width, 3]; None without render_mode="rgb_array"."""
        screens = self._vector.render()
        return None if screens is None else screens[0]

    def close(self) -> None:
        """Free the environment."""
        self._vector.close()


def _of_one(infos: dict[str, Any]) -> dict[str, Any]:
    """Return the infos of a vector of length 1 without the vector axis and masks."""
    return {name: values[0] for name, values in infos.items() if not name.startswith("_")}
