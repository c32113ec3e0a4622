"""The members of a finished generation, as run.db has them, or asked again from the state before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroevo.core.behavior import Behavior
from neuroevo.core.errors import UserError
from neuroevo.core.genome import Genome
from neuroevo.core.tree import centers_of
from neuroevo.runs.members import MembersReader
from neuroevo.runs.reader import RunReader
from neuroevo.runs.rebuilt import weights_of
from neuroevo.sessions.evaluators import make_evaluator
from neuroevo.training.phase import play_phase, played_by, population_seeds
from neuroevo.training.state import TrainState


@dataclass(frozen=True, repr=False)
class Members:
    """The N members of a generation.

    Attributes:
        generation: Its number, from 0.
        genomes: Of the members, [N].
        fitness: Of the members, float64 [N].
        behaviors: Of the members, floats [N, B], NaN where all episodes of a member failed; None if not asked for.
    """

    generation: int
    genomes: Sequence[Genome]
    fitness: np.ndarray
    behaviors: np.ndarray | None = None

    @property
    def parents(self) -> list[Genome | None]:
        """Whose offspring each member is, [N]: the genome without its last mutation; None for one without mutations."""
        return [each.parent for each in self.genomes]

    @property
    def ranking(self) -> np.ndarray:
        """The members' indices, the best first, int64 [N]; equals stay in their order."""
        return np.argsort(-self.fitness, kind="stable")

    def __repr__(self) -> str:
        fitness = f"fitness mean {self.fitness.mean():,.1f} max {self.fitness.max():,.1f}" if len(self.fitness) else ""
        return f"Members(generation {self.generation}, {len(self.genomes)} members, {fitness})"


def read_population(reader: RunReader, generation: int | None = None, behaviors: bool | Behavior = False) -> Members:
    """Read a generation's members and their fitness.

    Args:
        reader: The run.
        generation: Which, counted from 0; None: the last finished one.
        behaviors: Whether behaviors are wanted: a Behavior says which, True those of the algorithm, or where episodes
            ended if it records none. If they are not kept, the members play their episodes again, with the seeds that
            they had.

    Returns:
        The members in the order in which the algorithm asked for them.

    Raises:
        UserError: There is no such generation, what is wanted is not kept and the state before it is gone, the
            environment has no behaviors, or the episodes end otherwise here than in the run.
    """
    generation = reader.elite()[0] if generation is None else reader.finished(generation)
    recorded = reader.config.recorded_behavior
    wanted = (recorded or Behavior()) if behaviors is True else behaviors or None
    kept = _kept(reader, generation, wanted is not None and wanted == recorded)
    if kept is not None and (wanted is None or kept.behaviors is not None):
        return kept
    there = reader.checkpoints()
    if generation not in there:
        known = ", ".join(str(each) for each in there if each <= reader.finished()) or "none"
        what = "members" if kept is None else "members' episodes"
        raise UserError(
            f"the {what} of generation {generation} are not known any more, since the state before it is gone; "
            f"expected one of these generations: {known} (keep_last and keep_every of [checkpoints] say how many stay)"
        )
    state = reader.state(generation)
    genomes = reader.config.algorithm.ask(state.algorithm, weights_of(reader.config, reader.reference_batch()))
    population = Members(generation, genomes, np.array(reader.rows()[generation]["fitness"], np.float64))
    if wanted is None:
        return population
    return replace(population, behaviors=_behaviors(reader, population, state, wanted))


def _kept(reader: RunReader, generation: int, behaviors: bool) -> Members | None:
    """Return what run.db has of a generation; None if it has nothing, or centers whose weights are not stored."""
    found = MembersReader(reader.path)
    members = found.find(generation, behaviors)
    if members is None:
        return None
    genomes = found.genomes(generation)
    if not all(center.has_weights for center in centers_of(genomes).values()):
        try:
            genomes = reader.config.algorithm.ask(
                reader.algorithm_state(generation), weights_of(reader.config, reader.reference_batch())
            )
        except UserError:
            return None
    return Members(generation, genomes, members.fitness, members.played_behaviors)


def _behaviors(reader: RunReader, population: Members, state: TrainState, behavior: Behavior) -> np.ndarray:
    """Return the members' behaviors [N, B] in the run's episodes. UserError: the episodes differ on this machine."""
    config, generation = reader.config, population.generation
    if config.environment.accelerated:
        raise UserError(f"behaviors of {config.env.name} are not recorded, expected an environment on the CPU")
    seeds = population_seeds(config.training, generation, len(population.genomes))
    statistics = state.observation_statistics
    with make_evaluator(config.on_this_machine(), reader.reference_batch(), behavior) as evaluator:
        normalizer = None if statistics is None else statistics.normalizer(generation, evaluator.observation_size)
        outcomes, _ = play_phase(evaluator, population.genomes, seeds, state.max_episode_steps, normalizer)
    played = played_by(population.genomes, outcomes)
    if not np.array_equal(played.fitness, population.fitness):
        member = int(np.flatnonzero(played.fitness != population.fitness)[0])
        raise UserError(
            f"member {member} of generation {generation} has fitness {played.fitness[member]:,.10g} when it plays its "
            f"episodes again here, expected {population.fitness[member]:,.10g} as in the run: its behavior then is not "
            "known (another kind of device or another version of a simulator plays otherwise)"
        )
    assert played.behaviors is not None  # since the evaluator records them
    return played.behaviors
