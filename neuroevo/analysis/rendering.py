"""Videos of a run's networks at play: the elite alone, or beside the next best of its generation."""

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
    """Who plays.

    Attributes:
        name: What the video calls it.
        genome: Its network's.
        normalizer: What it sees observations through; None: as they are.
    """

    name: str
    genome: Genome
    normalizer: Normalizer | None = None


@dataclass(frozen=True)
class Rendered:
    """What was written.

    Attributes:
        outcomes: Of the M players, for each of the episodes.
        frames: How many the video has.
        fps: Frames per second.
        size: Width and height of the picture, in pixels.
    """

    outcomes: list[Outcomes]
    frames: int
    fps: float
    size: tuple[int, int]


def choose_agents(reader: RunReader, generation: int | None = None, members: int = 1) -> tuple[int, list[Agent]]:
    """Return a finished generation, its elite, and its other members with the highest fitness.

    Args:
        reader: The run.
        generation: Which, counted from 0; None: the last one.
        members: How many players, the elite included.

    Raises:
        UserError: There is no such generation, it has fewer members, or the state that they follow from is gone.
    """
    generation, elite = reader.elite(generation)
    players = [Agent("elite", elite.genome, elite.normalizer)]
    if members == 1:
        return generation, players
    population = read_population(reader, generation)
    others = [
        Agent(f"#{rank}", population.genomes[index], elite.normalizer)
        for rank, index in enumerate(population.ranking, start=1)
        if population.genomes[index] != elite.genome
    ]
    if members - 1 > len(others):
        raise UserError(f"members is {members}, expected at most {len(others) + 1} in generation {generation}")
    return generation, players + others[: members - 1]


def render(
    config: Config,
    players: Sequence[Agent],
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
    """Plays an episode of each seed, all players at once, and writes them one after another into a video at `path`.

    An episode has a frame for its start and for each step of the longest player; who is over before stays dimmed. A
    robot's steps are finer: as many are left out as make at most 60 frames a second, unless `fps` is given.

    Args:
        config: The run's configuration.
        players: Who plays, M of them. All see through the first one's normalizer, as all of a generation do.
        seeds: One for each episode.
        path: The video's file, whose ending says its format.
        max_episode_steps: Where episodes are cut off, in steps; 0 for the environment's own limit.
        scale: How many pixels a side a screen's pixel becomes; a picture of a robot is 240 times this wide and high.
        fps: Frames per second; None: real time, as the console or the environment has it.
        captions: Whether names and returns stand above the screens.
        reference_batch: The run's, [B, ...], if its networks need one.
        on_progress: Told how many episodes are over, and the steps of the one that is played.
        watch: Shown every moment and the environments as they are then, slot m being player m's.

    Raises:
        UserError: The environment has nothing to show, or there is no graphics library that draws robots.
    """
    replay = _replay(config, players, reference_batch)
    outcomes: list[Outcomes] = []
    frames = 0
    with _view(config, replay.pool, scale, every_step=fps is not None) as view:
        fps = view.steps_per_s / view.stride if fps is None else fps
        pictures = np.zeros((len(players), *view.shape), np.uint8)
        grid = Tiles(len(players), view.shape[0], view.shape[1], view.scale, captions)
        height, width, _ = grid.shape
        with VideoWriter(path, height, width, fps) as video:
            for seed in seeds:
                stale = np.zeros(len(players), bool)  # who moved since its picture
                for number, moment in enumerate(replay.play(seed, max_episode_steps)):
                    watch(replay.pool, moment)
                    stale[moment.moved] = True
                    if number % view.stride and moment.playing.any():
                        continue
                    pictures[stale] = view.pictures(np.flatnonzero(stale))
                    stale[:] = False
                    bright = moment.playing | ~moment.playing.any()  # the last picture is not dark
                    video.write(grid.picture(pictures, _captions(players, moment), bright))
                    frames += 1
                    on_progress(len(outcomes), int(moment.steps.max()))
                failures = {slot: failure for slot in range(len(players)) if (failure := replay.pool.failure(slot))}
                outcomes.append(Outcomes(moment.returns, moment.steps, failures))
    return Rendered(outcomes, frames, fps, (width, height))


def _view(config: Config, pool: EnvPool, scale: int, every_step: bool) -> View:
    """Return the views. UserError: the environment has no screens, or no graphics library draws them."""
    if pool.render_shape:
        return Screens(pool, scale, config.environment.frames_per_s)
    model = config.environment.robot_model
    if model is None:
        raise UserError(f"env.name: {config.env.name} has no screens, of which a video could be made")
    return Robots(pool, model, scale, every_step)


def _replay(config: Config, players: Sequence[Agent], reference_batch: np.ndarray | None) -> Replay:
    """Make the players' environment with screens. UserError: it cannot be made with screens."""
    rendered = config.environment.rendered()
    genomes = [player.genome for player in players]
    try:
        return Replay(replace(config, env=Env.of(rendered)), genomes, players[0].normalizer, reference_batch)
    except NativeError as error:
        if rendered is config.environment:
            raise
        why = str(error).splitlines()[0]
        raise UserError(f"env.name: {config.env.name} cannot be made with screens, for a video: {why}") from error


def _captions(players: Sequence[Agent], moment: ReplayStep) -> list[str]:
    return [
        f"{player.name}: {value:g}{'' if playing else ' (over)'}"
        for player, value, playing in zip(players, moment.returns, moment.playing, strict=True)
    ]
