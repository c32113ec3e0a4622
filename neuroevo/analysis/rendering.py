"""Videos of a run's elite, alone or side by side with other members of its generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuroevo.analysis.population import read_population
from neuroevo.analysis.replay import Replay, ReplayStep
from neuroevo.analysis.video.tiles import Tiles
from neuroevo.analysis.video.views import Robots, Screens, View
from neuroevo.analysis.video.writer import VideoWriter
from neuroevo.config.schema import Config, Env
from neuroevo.core.episode import Outcomes
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.native.env_pool import EnvPool
from neuroevo.runs.reader import RunReader


@dataclass(frozen=True)
class Agent:
    """Network that plays in a video.

    Attributes:
        name: Name in the caption.
        genome: Genome of the network.
        normalizer: Normalizer of its observations; None if they are not normalized.
    """

    name: str
    genome: Genome
    normalizer: Normalizer | None = None


@dataclass(frozen=True)
class Rendered:
    """Summary of a rendered video.

    Attributes:
        names: Names of the M agents.
        outcomes: Outcomes of the agents, one entry per episode.
        frames: Number of frames.
        fps: Frames per second.
        size: Width and height of a frame, in pixels.
    """

    names: list[str]
    outcomes: list[Outcomes]
    frames: int
    fps: float
    size: tuple[int, int]


def choose_agents(reader: RunReader, generation: int | None = None, members: int = 1) -> tuple[int, list[Agent]]:
    """Select the elite of a finished generation and the other members with the highest fitness.

    Args:
        reader: The run.
        generation: Index of the generation, from 0; None for the last finished generation.
        members: Number of agents, including the elite.

    Returns:
        The index of the generation and its agents, the elite first.

    Raises:
        UserError: The generation does not exist or has fewer members, or its members are no longer available.
    """
    generation, elite = reader.elite(generation)
    agents = [Agent("elite", elite.genome, elite.normalizer)]
    if members == 1:
        return generation, agents
    population = read_population(reader, generation)
    others = [
        Agent(f"#{rank}", population.genomes[index], elite.normalizer)
        for rank, index in enumerate(population.ranking, start=1)
        if population.genomes[index] != elite.genome
    ]
    if members - 1 > len(others):
        raise UserError(f"members is {members}, expected at most {len(others) + 1} in generation {generation}")
    return generation, agents + others[: members - 1]


def render(
    config: Config,
    agents: Sequence[Agent],
    seeds: Sequence[int],
    path: Path,
    *,
    max_episode_steps: int,
    scale: int = 2,
    fps: float | None = None,
    captions: bool = True,
    reference_batch: np.ndarray | None = None,
    on_progress: Callable[[int, int], None] = lambda episodes, steps: None,
    watch: Callable[[EnvPool, ReplayStep], None] = lambda pool, moment: None,
) -> Rendered:
    """Play an episode per seed with all agents in parallel, and write the episodes consecutively into a video.

    An episode has a frame for its initial state and for each step until the last agent is done; agents that are done
    earlier stay visible, dimmed. Robots have shorter steps: unless `fps` is given, steps are skipped so that the video
    has at most 60 frames per second.

    Args:
        config: The run's configuration.
        agents: The M agents. All use the normalizer of the first, which is the same for all members of a generation.
        seeds: Seed of each episode.
        path: The video file; its suffix selects the format.
        max_episode_steps: Steps after which an episode is cut off; 0 means the environment's own limit.
        scale: Width and height in the video of each pixel of a screen; a robot's picture is 240 * scale pixels wide and
            high.
        fps: Frames per second; None for the real-time rate of the console or environment.
        captions: Whether to write names and returns above the screens.
        reference_batch: The run's reference batch, [B, ...], if its networks need one.
        on_progress: Called with the number of finished episodes and the steps of the current episode.
        watch: Called with the environments and the state after the reset and every step; slot m belongs to agent m.

    Raises:
        UserError: The environment cannot be rendered, or no graphics library can draw its robot.
    """
    replay = _replay(config, agents, reference_batch)
    outcomes: list[Outcomes] = []
    frames = 0
    with _view(config, replay.pool, scale, every_step=fps is not None) as view:
        fps = view.steps_per_s / view.stride if fps is None else fps
        pictures = np.zeros((len(agents), *view.shape), np.uint8)
        grid = Tiles(len(agents), view.shape[0], view.shape[1], view.scale, captions)
        height, width, _ = grid.shape
        with VideoWriter(path, height, width, fps) as video:
            for seed in seeds:
                stale = np.zeros(len(agents), bool)  # agents that moved since their last picture
                for number, moment in enumerate(replay.play(seed, max_episode_steps)):
                    watch(replay.pool, moment)
                    stale[moment.moved] = True
                    if number % view.stride and moment.playing.any():
                        continue
                    pictures[stale] = view.pictures(np.flatnonzero(stale))
                    stale[:] = False
                    bright = moment.playing | ~moment.playing.any()  # the last frame is not dimmed
                    video.write(grid.picture(pictures, _captions(agents, moment), bright))
                    frames += 1
                    on_progress(len(outcomes), int(moment.steps.max()))
                failures = {slot: failure for slot in range(len(agents)) if (failure := replay.pool.failure(slot))}
                outcomes.append(Outcomes(moment.returns, moment.steps, failures))
    return Rendered([agent.name for agent in agents], outcomes, frames, fps, (width, height))


def _view(config: Config, pool: EnvPool, scale: int, every_step: bool) -> View:
    """Make the view of the environments. UserError: they have no screens, or no graphics library can draw them."""
    if pool.render_shape:
        return Screens(pool, scale, config.environment.frames_per_s)
    model = config.environment.robot_model
    if model is None:
        raise UserError(f"env.name: {config.env.name} has no screens to render")
    return Robots(pool, model, scale, every_step)


def _replay(config: Config, agents: Sequence[Agent], reference_batch: np.ndarray | None) -> Replay:
    """Make the agents' replay with screens. UserError: the environment does not support screens."""
    rendered = config.environment.rendered()
    genomes = [agent.genome for agent in agents]
    try:
        return Replay(replace(config, env=Env.of(rendered)), genomes, agents[0].normalizer, reference_batch)
    except NativeError as error:
        if rendered is config.environment:
            raise
        why = str(error).splitlines()[0]
        raise UserError(f"env.name: {config.env.name} cannot be rendered: {why}") from error


def _captions(agents: Sequence[Agent], moment: ReplayStep) -> list[str]:
    return [
        f"{agent.name}: {value:g}{'' if playing else ' (over)'}"
        for agent, value, playing in zip(agents, moment.returns, moment.playing, strict=True)
    ]
