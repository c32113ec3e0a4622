"""A page of HTML with an elite at play in a simulator on the accelerator, of which no video is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuroevo.config.schema import Config
from neuroevo.core.episode import Episode, Outcomes
from neuroevo.core.errors import UserError
from neuroevo.runs.reader import Elite

SUFFIX = ".html"


@dataclass(frozen=True)
class Page:
    """What was written.

    Attributes:
        outcomes: Of the episodes.
        frames: How many moments it shows.
    """

    outcomes: Outcomes
    frames: int


def check_name(path: Path) -> None:
    """UserError: the name of a page does not end as it should."""
    if path.suffix.lower() != SUFFIX:
        raise UserError(f"{path} ends in '{path.suffix}', expected a name that ends in {SUFFIX} for a run on Brax")


def write_page(
    config: Config,
    elite: Elite,
    seeds: Sequence[int],
    path: Path,
    *,
    max_episode_steps: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> Page:
    """Plays an episode of each seed, and writes them one after another into a page.

    Args:
        config: The run's configuration.
        elite: Who plays.
        seeds: One for each episode.
        path: The page's file.
        max_episode_steps: Where episodes are cut off, in steps; 0 for the environment's own limit.
        on_progress: Told how many episodes are over, and their steps.

    Raises:
        UserError: The environment cannot be made.
    """
    from neuroevo.accelerated.playback import page, watch
    from neuroevo.accelerated.start import make_evaluator, make_simulator

    episodes = [Episode(elite.genome, seed, max_episode_steps, elite.normalizer) for seed in seeds]
    with make_evaluator(config.environment, config.network, config.hardware.device, steps=1) as evaluator:
        simulator = make_simulator(config.environment)
        outcomes, kept = watch(evaluator, episodes, simulator.bodies, on_progress)
    frames = [frame for each in kept for frame in each]
    path.write_text(page(simulator, frames), encoding="utf-8")
    return Page(outcomes, len(frames))
