"""Videos of a run's networks at play: the elite alone, or beside the next best of its generation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuroevo.analysis.population import read_population
from neuroevo.analysis.replay import Replay, ReplayStep
from neuroevo.analysis.video.tiles import Tiles
from neuroevo.analysis.video.writer import VideoWriter
from neuroevo.config.schema import Config, Env
from neuroevo.core.episode import Outcomes
from neuroevo.core.errors import NativeError, UserError
from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.runs.reader import RunReader

FRAMES_PER_S = 60  # emulator frames of an Atari console


@dataclass(frozen=True)
class Player:
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


def choose_players(reader: RunReader, generation: int | None = None, members: int = 1) -> tuple[int, list[Player]]:
    """A finished generation, and its elite and the best others of it by fitness.

    Args:
        reader: The run.
        generation: Which, counted from 0; None: the last one.
        members: How many players, the elite included.

    Raises:
        UserError: There is no such generation, it has fewer members, or the checkpoint that remembers them is gone.
    """
    generation, elite = reader.elite(generation)
    players = [Player("elite", elite.genome, elite.normalizer)]
    if members == 1:
        return generation, players
    population = read_population(reader, generation)
    others = [
        Player(f"#{rank}", population.genomes[index], elite.normalizer)
        for rank, index in enumerate(population.ranking, start=1)
        if population.genomes[index] != elite.genome
    ]
    if members - 1 > len(others):
        raise UserError(f"members is {members}, expected at most {len(others) + 1} in generation {generation}")
    return generation, players + others[: members - 1]


def render(
    config: Config,
    players: Sequence[Player],
    seeds: Sequence[int],
    path: Path,
    *,
    max_episode_steps: int,
    scale: int = 2,
    fps: float | None = None,
    captions: bool = True,
    reference_batch: np.ndarray | None = None,
    on_progress: Callable[[int, int], None] = lambda episodes, steps: None,
) -> Rendered:
    """Plays an episode of each seed, all players at once, and writes them one after another into a video at `path`.

    An episode has a frame for its start and for each step of the longest player; who is over before stays dimmed.

    Args:
        config: The run's configuration.
        players: Who plays, M of them. All see through the first one's normalizer, as all of a generation do.
        seeds: One for each episode.
        path: The video's file, whose ending says its format.
        max_episode_steps: Where episodes are cut off, in steps; 0 for the environment's own limit.
        scale: How many pixels a side a screen's pixel becomes.
        fps: Frames per second; None: real time, as the console or the environment has it.
        captions: Whether names and returns stand above the screens.
        reference_batch: The run's, [B, ...], if its networks need one.
        on_progress: Told how many episodes are over, and the steps of the one that is played.

    Raises:
        UserError: The environment has no screens.
    """
    replay = _replay(config, players, reference_batch)
    if not replay.pool.render_shape:
        raise UserError(f"env.name: {config.env.name} has no screens, of which a video could be made")
    screens = np.zeros((len(players), *replay.pool.render_shape), np.uint8)
    grid = Tiles(len(players), screens.shape[1], screens.shape[2], scale, captions)
    height, width, _ = grid.shape
    if fps is None:
        known = config.environment.frames_per_s()
        fps = FRAMES_PER_S / replay.pool.frame_skip if known is None else known
    outcomes: list[Outcomes] = []
    frames = 0
    with VideoWriter(path, height, width, fps) as video:
        for seed in seeds:
            for moment in replay.play(seed, max_episode_steps):
                screens[moment.moved] = replay.pool.render(moment.moved)
                bright = moment.playing | ~moment.playing.any()  # the last picture is not dark
                video.write(grid.picture(screens, _captions(players, moment), bright))
                frames += 1
                on_progress(len(outcomes), int(moment.steps.max()))
            failures = {slot: failure for slot in range(len(players)) if (failure := replay.pool.failure(slot))}
            outcomes.append(Outcomes(moment.returns, moment.steps, failures))
    return Rendered(outcomes, frames, fps, (width, height))


def _replay(config: Config, players: Sequence[Player], reference_batch: np.ndarray | None) -> Replay:
    """Of an environment with screens, if its family can have some. UserError: this one cannot, and what it says."""
    rendered = config.environment.rendered()
    genomes = [player.genome for player in players]
    try:
        return Replay(replace(config, env=Env.of(rendered)), genomes, players[0].normalizer, reference_batch)
    except NativeError as error:
        if rendered is config.environment:
            raise
        why = str(error).splitlines()[0]
        raise UserError(f"env.name: {config.env.name} cannot be made with screens, for a video: {why}") from error


def _captions(players: Sequence[Player], moment: ReplayStep) -> list[str]:
    return [
        f"{player.name}: {value:g}{'' if playing else ' (over)'}"
        for player, value, playing in zip(players, moment.returns, moment.playing, strict=True)
    ]
