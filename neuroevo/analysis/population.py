"""GenerationMembers of a finished generation, read from run.db or regenerated from the state before the generation."""

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
class GenerationMembers:
    """The N members of a generation.

    Attributes:
        generation: Index of the generation, from 0.
        genomes: Genome of each member, [N].
        fitness: Fitness of each member, float64 [N].
        behaviors: Behavior of each member, floats [N, B], NaN if all its episodes failed; None if not requested.
    """

    generation: int
    genomes: Sequence[Genome]
    fitness: np.ndarray
    behaviors: np.ndarray | None = None

    @property
    def parents(self) -> list[Genome | None]:
        """Parent of each member, [N]: its genome without the last mutation; None for a genome without mutations."""
        return [each.parent for each in self.genomes]

    @property
    def ranking(self) -> np.ndarray:
        """Indices of the members by descending fitness, int64 [N]; ties keep their order."""
        return np.argsort(-self.fitness, kind="stable")

    def __repr__(self) -> str:
        fitness = f"fitness mean {self.fitness.mean():,.1f} max {self.fitness.max():,.1f}" if len(self.fitness) else ""
        return f"GenerationMembers(generation {self.generation}, {len(self.genomes)} members, {fitness})"


def read_population(
    reader: RunReader, generation: int | None = None, behaviors: bool | Behavior = False
) -> GenerationMembers:
    """Read a generation's members and their fitness.

    Args:
        reader: The run.
        generation: Index of the generation, from 0; None for the last finished generation.
        behaviors: Behaviors to return: a Behavior selects their type; True selects the algorithm's or, if the algorithm
            records none, the final behavior of each episode. Behaviors that are not stored are recomputed by replaying
            the members' episodes with their original seeds.

    Returns:
        The members in the order returned by the algorithm's ask().

    Raises:
        UserError: The generation does not exist, the requested data is not stored and the state before the generation
            is deleted, the environment has no behaviors, or the replayed episodes differ from those of the run.
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
            f"the {what} of generation {generation} are no longer available, since the state before it is deleted; "
            f"expected one of these generations: {known} (see keep_last and keep_every of [checkpoints])"
        )
    state = reader.state(generation)
    genomes = reader.config.algorithm.ask(state.algorithm, weights_of(reader.config, reader.reference_batch()))
    population = GenerationMembers(generation, genomes, np.array(reader.rows()[generation]["fitness"], np.float64))
    if wanted is None:
        return population
    return replace(population, behaviors=_behaviors(reader, population, state, wanted))


def _kept(reader: RunReader, generation: int, behaviors: bool) -> GenerationMembers | None:
    """Read a generation from run.db; None if it is not stored, or has centers whose weights are not stored."""
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
    return GenerationMembers(generation, genomes, members.fitness, members.played_behaviors)


def _behaviors(reader: RunReader, population: GenerationMembers, state: TrainState, behavior: Behavior) -> np.ndarray:
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
            f"member {member} of generation {generation} has fitness {played.fitness[member]:,.10g} when its episodes "
            f"are replayed here, expected {population.fitness[member]:,.10g} as in the run; its behavior cannot be "
            "recovered (a different type of device or version of a simulator can change episodes)"
        )
    assert played.behaviors is not None  # since the evaluator records them
    return played.behaviors
