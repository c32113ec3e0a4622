"""Playback of episodes step by step, in the same program as in training, so that results are bit-identical."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
from brax.io import html

from neuroevo.accelerated.brax_simulator import BraxSimulator
from neuroevo.accelerated.evaluator import AcceleratedEvaluator
from neuroevo.accelerated.program_state import NO_EPISODE
from neuroevo.core.episode import Episode, Outcomes
from neuroevo.core.evaluator import Progress


def watch(
    evaluator: AcceleratedEvaluator,
    episodes: Sequence[Episode],
    what: Callable[[Any], Any],
    on_progress: Progress | None = None,
) -> tuple[Outcomes, list[list[Any]]]:
    """Play episodes and record part of every state.

    Args:
        evaluator: Evaluator whose program returns after each step (steps=1).
        episodes: The N episodes.
        what: Function that selects the recorded part of a simulator's state.
        on_progress: See the Evaluator protocol.

    Returns:
        The outcomes, and for each episode the recorded parts of its initial state and of the states after its steps.
        An episode that ends with its first step has only the initial one.
    """
    kept: list[list[Any]] = [[] for _ in episodes]
    finished: set[int] = set()
    batch = evaluator.submit(episodes)
    while batch.left:
        evaluator.advance(batch)
        seen = evaluator.look(what)
        for place in np.flatnonzero(seen.stocked != NO_EPISODE).tolist():
            if not kept[seen.stocked[place]]:
                kept[seen.stocked[place]].append(_of(seen.start, place))
        # A lane keeps the last state of a finished episode until it takes the next one.
        for lane in np.flatnonzero(seen.played != NO_EPISODE).tolist():
            number = int(seen.played[lane])
            if number not in finished:
                kept[number].append(_of(seen.now, lane))
            if seen.over[lane]:
                finished.add(number)
        if on_progress is not None:
            on_progress(batch.over, int(batch.steps.sum()))
    return batch.outcomes, kept


def page(simulator: BraxSimulator, frames: Sequence[Any]) -> str:
    """Return an HTML page that shows a robot in Brax's viewer, which the page loads from the Internet.

    Args:
        simulator: The robot's simulator.
        frames: Return values of bodies() for successive states.
    """
    system = simulator.system().tree_replace({"opt.timestep": simulator.environment.dt})
    return html.render(system, [SimpleNamespace(x=frame) for frame in frames], colab=False)


def _of(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)
