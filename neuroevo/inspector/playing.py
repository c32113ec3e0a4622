"""Playback of a member: its episode from the run as a video, and its actions step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.analysis.population import read_population
from neuroevo.analysis.rendering import Agent, render
from neuroevo.analysis.replay import Replay, ReplayStep
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center, Genome
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.payload import array
from neuroevo.native.env_pool import EnvPool
from neuroevo.runs.reader import RunReader
from neuroevo.training.phase import population_seeds

_SHOWN_MUTATIONS = 5
_POSITION = 2  # size of a behavior that is a position


@dataclass(frozen=True)
class Member:
    """Reference to an episode of a member.

    Attributes:
        generation: Generation of the member.
        index: Index of the member in its generation.
        episode: Index of the episode, from 0.
    """

    generation: int
    index: int
    episode: int


class Watched:
    """Recorder of an agent's episode, called after the reset and every step.

    Attributes:
        actions: Action of each step, int32 [] or float32 [A].
        path: Positions [x, y] after the reset and every step; empty if the environment has no positions.
        result: State after the last step.
        failure: Reason why the episode failed; "" if it did not.
        bounds: Lower and upper bounds of an action, float32 [A] each; [0] for discrete actions.
        num_actions: Number of actions, or of numbers in a continuous action.
        action_names: Names of the actions, as in EnvPool.
    """

    def __init__(self) -> None:
        """Create an empty record."""
        self.actions: list[np.ndarray] = []
        self.path: list[np.ndarray] = []
        self.result: ReplayStep | None = None
        self.failure = ""
        self.bounds: tuple[np.ndarray, np.ndarray] = (np.zeros(0), np.zeros(0))
        self.num_actions = 0
        self.action_names: tuple[str, ...] = ()

    def __call__(self, pool: EnvPool, moment: ReplayStep) -> None:
        """Record the reset or a step of slot 0."""
        if moment.actions is not None:
            self.actions.append(moment.actions[0])
        if pool.behavior_shape == (_POSITION,):
            self.path.append(pool.behavior([0])[0])
        if not moment.playing[0]:
            self.failure = pool.failure(0)
            self.bounds, self.num_actions = (pool.action_low, pool.action_high), pool.num_actions
            self.action_names = pool.action_names
        self.result = moment


def play(run: InspectedRun, member: Member, video: Path, on_step: Callable[[int], None]) -> dict[str, Any]:
    """Replay an episode of a member with the seed, cut-off and normalizer of the run.

    Args:
        run: The run.
        member: The member and its episode.
        video: The video file to write.
        on_step: Called repeatedly with the number of steps so far.

    Returns:
        The data that the page shows with the video. `video` has the size and frame rate of the video, or is None if no
        video was made; `note` then contains the reason.

    Raises:
        UserError: The member does not exist, is no longer available, or cannot be played on this machine.
    """
    reader = run.to_play()
    if reader.config.environment.accelerated:
        raise UserError(
            f"{reader.config.env.name} is simulated on the accelerator: neuroevo render makes a page of its elite"
        )
    size = run.size(member.generation)
    if not 0 <= member.index < size:
        raise UserError(f"member {member.index} of generation {member.generation} is out of range [0, {size})")
    if not 0 <= member.episode < reader.config.training.episodes:
        episodes = reader.config.training.episodes
        raise UserError(f"episode {member.episode} of a member is out of range [0, {episodes})")
    if member.generation >= len(run.metrics.rows):
        raise UserError(f"generation {member.generation} is not finished: its elite still plays test episodes")
    reader.check_file()
    genome = _genome(run, reader, member)
    seed = population_seeds(reader.config.training, member.generation, size)[member.index][member.episode]
    steps = int(run.metrics.rows[member.generation]["max_episode_steps"])
    watched, note = Watched(), ""
    batch = reader.reference_batch()
    agent = Agent("", genome, reader.normalizer(member.generation))
    made: dict[str, Any] = {}
    try:
        rendered = render(
            reader.config,
            [agent],
            [seed],
            video,
            max_episode_steps=steps,
            scale=reader.config.environment.screen_scale,
            captions=False,
            reference_batch=batch,
            on_progress=lambda episodes, step: on_step(step),
            watch=watched,
        )
        made = {"width": rendered.size[0], "height": rendered.size[1], "fps": rendered.fps}
    except UserError as error:  # the episode can be replayed without a video
        note, watched = str(error), Watched()
        replay = Replay(reader.config, [genome], agent.normalizer, batch)
        for moment in replay.play(seed, steps):
            watched(replay.pool, moment)
            on_step(int(moment.steps[0]))
    fitness = float(run.metrics.fitness[member.generation][member.index])
    return {**_outcome(watched, fitness, reader), "video": made or None, "note": note, "seed": str(seed),
            "max_episode_steps": steps, "genome": _genome_text(genome)}  # fmt: skip


def _genome(run: InspectedRun, reader: RunReader, member: Member) -> Genome:
    """Return a member's genome, with the weights of its center, if any. UserError: it is no longer stored."""
    if member.generation in run.members.kept():
        genome = run.members.genome(member.generation, member.index)
        if not isinstance(genome.root, Center):
            return genome
    return read_population(reader, member.generation).genomes[member.index]


def _outcome(watched: Watched, fitness: float, reader: RunReader) -> dict[str, Any]:
    result = watched.result
    assert result is not None  # set after the reset
    value = float(result.returns[0])
    low, high = watched.bounds
    names = [name.replace("_", " ") for name in watched.action_names]
    actions: dict[str, Any] = {"count": watched.num_actions, "continuous": bool(len(low)), "names": names}
    taken = np.array(watched.actions)
    actions["values"] = array(taken.astype(np.float32 if len(low) else np.int16))
    if len(low):
        actions |= {"low": [float(each) for each in low], "high": [float(each) for each in high]}
    path = np.array(watched.path, np.float32).reshape(-1, _POSITION)
    once = reader.config.training.episodes == 1 and not watched.failure
    return {
        "return": value,
        "fitness": fitness,
        "steps": int(result.steps[0]),
        "episodes": reader.config.training.episodes,
        "same": value == fitness if once else None,
        "failure": watched.failure,
        "actions": actions,
        "path": {"x": array(path[:, 0]), "y": array(path[:, 1])} if len(path) else None,
    }


def _genome_text(genome: Genome) -> dict[str, Any]:
    """Describe a genome for the page; seeds are strings, since a browser's numbers have 53 bits."""
    root = genome.root.name if isinstance(genome.root, Center) else str(genome.root)
    mutations = genome.mutations[-_SHOWN_MUTATIONS:]
    last = [[str(each.seed), each.scale] for each in mutations]
    kind = str(mutations[-1].kind) if mutations else ""
    own = {"network": genome.network} if isinstance(genome.network, str) else {}
    return {"root": root, "mutations": genome.depth, "last": last, "kind": kind, **own}
