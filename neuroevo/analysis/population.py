"""The members of a finished generation, asked again from the checkpoint before it; their behaviors, played again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuroevo.analysis.replay import Replay
from neuroevo.core.behavior import Behavior
from neuroevo.core.errors import UserError
from neuroevo.core.evaluator import Weights
from neuroevo.core.genome import Genome
from neuroevo.runs.checkpoints import Checkpoints
from neuroevo.runs.reader import RunReader
from neuroevo.runs.training_run import make_evaluator
from neuroevo.training.phase import play_phase, population_seeds
from neuroevo.training.state import TrainState


@dataclass(frozen=True)
class Population:
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


def read_population(reader: RunReader, generation: int | None = None, behaviors: bool | Behavior = False) -> Population:
    """Reads a generation's members and their fitness.

    Args:
        reader: The run.
        generation: Which, counted from 0; None: the last finished one.
        behaviors: Whether to play the members' episodes again, with the seeds that they had, to record behaviors: a
            Behavior says which, True those of the algorithm, or where episodes ended if it records none.

    Returns:
        The members in the order in which the algorithm asked for them.

    Raises:
        UserError: There is no such generation, the checkpoint that remembers its members is gone, the environment has
            no behaviors, or the episodes end otherwise here than in the run.
    """
    generation, elite = reader.elite(generation)
    rows = reader.rows()
    there = Checkpoints(reader.path / "checkpoints", reader.config.checkpoints).generations()
    if generation not in there:
        known = ", ".join(str(finished) for finished in there if finished < len(rows)) or "none"
        raise UserError(
            f"the members of generation {generation} are not known any more, since the checkpoint before it is gone; "
            f"expected one of these generations: {known} (keep_last and keep_every of [checkpoints] say how many stay)"
        )
    state = reader.state(generation)
    genomes = reader.config.algorithm.ask(state.algorithm, _weights(reader, elite.genome))
    population = Population(generation, genomes, np.array(rows[generation]["fitness"], np.float64))
    if behaviors is False:
        return population
    wanted = (reader.config.algorithm.behavior or Behavior()) if behaviors is True else behaviors
    return replace(population, behaviors=_behaviors(reader, population, state, wanted))


def _weights(reader: RunReader, genome: Genome) -> Weights:
    """What makes the weights of the run's genomes, of which one is given."""
    if reader.config.environment.family.accelerated:
        with make_evaluator(reader.config) as evaluator:
            return evaluator.weights
    return Replay(reader.config, [genome], reference_batch=reader.reference_batch()).weights


def _behaviors(reader: RunReader, population: Population, state: TrainState, behavior: Behavior) -> np.ndarray:
    """The members' behaviors [N, B], from the same episodes as in the run. UserError: they are not the same here."""
    config, generation = reader.config, population.generation
    if config.environment.family.accelerated:
        raise UserError(f"behaviors of {config.env.name} are not recorded, expected an environment on the CPU")
    seeds = population_seeds(config.training, generation, len(population.genomes))
    statistics = state.observation_statistics
    with make_evaluator(config.on_this_machine(), reader.reference_batch(), behavior) as evaluator:
        normalizer = None if statistics is None else statistics.normalizer(generation, evaluator.observation_size)
        played = play_phase(evaluator, population.genomes, seeds, state.max_episode_steps, normalizer).played
    if not np.array_equal(played.fitness, population.fitness):
        member = int(np.flatnonzero(played.fitness != population.fitness)[0])
        raise UserError(
            f"member {member} of generation {generation} has fitness {played.fitness[member]:,.10g} when it plays its "
            f"episodes again here, expected {population.fitness[member]:,.10g} as in the run: its behavior then is not "
            "known (another kind of device or another version of a simulator plays otherwise)"
        )
    assert played.behaviors is not None  # since the evaluator records them
    return played.behaviors
