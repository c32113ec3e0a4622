"""HTML page that plays an elite's episodes in a simulator on the accelerator, for which no videos are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from neuroevo.config.schema import Config
from neuroevo.core.episode import Episode, Outcomes
from neuroevo.core.errors import UserError
from neuroevo.runs.reader import Elite

SUFFIX = ".html"


@dataclass(frozen=True)
class Page:
    """Summary of a written page.

    Attributes:
        outcomes: Outcomes of the episodes.
        frames: Number of frames.
    """

    outcomes: Outcomes
    frames: int


def check_name(path: Path) -> None:
    """Check that the name of a page has the suffix .html. UserError: it has another suffix."""
    if path.suffix.lower() != SUFFIX:
        raise UserError(f"{path} ends in '{path.suffix}', expected a name that ends in {SUFFIX} for a run on Brax")


def check_options(given: Mapping[str, bool]) -> None:
    """Check that no option of videos is given. UserError: the first one that is given, by its name."""
    for name in (name for name, chosen in given.items() if chosen):
        raise UserError(f"{name} applies to videos only; a run on Brax is rendered as a web page of the elite")


def write_page(
    config: Config,
    elite: Elite,
    seeds: Sequence[int],
    path: Path,
    *,
    max_episode_steps: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> Page:
    """Play an episode per seed, and write the episodes consecutively into a page.

    Args:
        config: The run's configuration.
        elite: The elite.
        seeds: Seed of each episode.
        path: The file to write.
        max_episode_steps: Steps after which an episode is cut off; 0 means the environment's own limit.
        on_progress: Called with the number of finished episodes and their total steps.

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
