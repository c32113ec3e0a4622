"""Starting from the best genomes of another run: training.start_from."""

from __future__ import annotations

from neuroevo.config import Config
from neuroevo.errors import UserError
from neuroevo.genome import Genome
from neuroevo.run_reader import RunReader


def genomes_to_start_from(config: Config) -> list[Genome]:
    """The best genomes of the run in training.start_from, best first; none where the key is not set.

    UserError: there is no such run, none of its generations is finished, or its network is another one.
    """
    path = config.training.start_from
    if path is None:
        return []
    other = RunReader(path)
    theirs, ours = other.config.network, config.network
    if theirs.name != ours.name:  # another dtype plays the same genomes
        raise UserError(f"training.start_from = {path}: its network is {theirs.name}, this run's is {ours.name}")
    other.elite()  # says when no generation is finished
    return other.config.algorithm.best(other.state().algorithm)
