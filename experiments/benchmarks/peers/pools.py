"""EnvPool with neuroevo's settings: no-ops, frame skip, stack, whole games, unclipped rewards."""

from __future__ import annotations

import envpool

FRAME_SKIP = 4


def make_envpool(game: str, envs: int, threads: int, batch: int | None = None) -> object:
    """Make `envs` environments of a game; batch: number of environments that a step waits for, by default all."""
    name = "".join(word.capitalize() for word in game.split("_"))
    return envpool.make_gymnasium(
        f"{name}-v5",
        num_envs=envs,
        batch_size=batch or envs,
        num_threads=threads,
        stack_num=4,
        frame_skip=FRAME_SKIP,
        noop_max=30,
        episodic_life=False,
        reward_clip=False,
        repeat_action_probability=0.0,
    )
