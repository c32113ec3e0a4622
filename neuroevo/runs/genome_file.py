"""Genome files: an elite as text, from which every command that needs only an elite rebuilds its network.

A genome file is a run's config.toml and one more table; a network of millions of weights takes a few kilobytes:

    [genome]
    generation = 12
    root = 5171118701485745775         # seed of the initial weights
    network = 0                        # or the text of the genome's own network
    mutations = [                      # seed, scale and, unless it is Gaussian, kind
        [632618417857002519, 0.0020000000949949026],
    ]

    [genome.normalizer]                # if observations are normalized
    mean = [0.25, -1.5]
    std = [1.0, 2.0]
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.config.schema import Config
from neuroevo.core.errors import UserError, cannot_read
from neuroevo.core.genome import Genome, from_json, to_json
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.core.problems import inline
from neuroevo.core.tree import centers_of
from neuroevo.runs.about import draw_reference
from neuroevo.system.reading import parse_toml, read_text

SUFFIX = ".toml"
_TABLE = "\n[genome]\n"
_KEYS = {"generation", "root", "network", "mutations"}


@dataclass(frozen=True)
class GenomeFile:
    """Contents of a genome file.

    Attributes:
        config: The configuration of the elite's run, as TOML.
        generation: The elite's generation.
        genome: The elite.
        normalizer: Normalizer of its observations; None if they are not normalized.
    """

    config: str
    generation: int
    genome: Genome
    normalizer: Normalizer | None


def genome_text(
    config: Config, generation: int, genome: Genome, normalizer: Normalizer | None, batch: np.ndarray | None
) -> str:
    """Return the text of a genome file.

    Args:
        config: The run's configuration.
        generation: The elite's generation.
        genome: The elite.
        normalizer: Normalizer of its observations, if any.
        batch: The run's reference batch, if it has one.

    Raises:
        UserError: The elite's weights do not follow from seeds: they include a center, or depend on the reference batch
            of another run.
    """
    if centers_of([genome]):
        raise UserError(
            f"the elite of generation {generation} is made of weights, expected one made of seeds alone; other "
            "formats, such as npz, contain the weights"
        )
    if batch is not None and not np.array_equal(batch, draw_reference(config)):
        raise UserError(
            "the run's reference batch comes from the run in training.start_from, expected one drawn from training.seed"
        )
    values = to_json(genome)
    lines = ["", "[genome]", f"generation = {generation}"]
    lines += [f"{name} = {inline(values[name])}" for name in ("root", "network")]
    lines += ["mutations = [", *(f"    {inline(each)}," for each in values["mutations"]), "]"]
    if normalizer is not None:
        lines += ["", "[genome.normalizer]"]
        lines += [f"{name} = {inline(getattr(normalizer, name).tolist())}" for name in ("mean", "std")]
    return config.toml() + "\n".join([*lines, ""])


def read_genome_file(path: Path) -> GenomeFile:
    """Read a genome file.

    Args:
        path: The file.

    Raises:
        UserError: The file cannot be read, or is not a genome file.
    """
    try:
        text = read_text(path)
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a genome file: it is not UTF-8 text") from None
    except OSError as error:
        raise cannot_read(f"the genome file {path}", error) from None
    config, found, rest = text.partition(_TABLE)
    if not found:
        raise UserError(f"{path} has no table [genome], expected a genome file or a run's folder")
    try:
        return GenomeFile(config, *_decoded(parse_toml(_TABLE + rest)))
    except (TypeError, ValueError) as error:
        raise UserError(f"{path} is not a genome file: {error}") from None


def check_network(path: Path, genome: Genome, config: Config) -> None:
    """Check that a genome has the configured network, or that the algorithm gives genomes their own networks.

    Args:
        path: The genome file.
        genome: The genome.
        config: The configuration in the file.

    Raises:
        UserError: The genome has another network.
    """
    if not isinstance(genome.network, str) and genome.network != 0:
        raise UserError(f"network in {path} is {genome.network}, expected 0")
    if isinstance(genome.network, str) and config.algorithm.own_networks is None:
        raise UserError(f"network in {path} is {genome.network[:80]}, expected 0 with {config.algorithm_name}")


def _decoded(tables: dict[str, Any]) -> tuple[int, Genome, Normalizer | None]:
    """Decode [genome]. TypeError or ValueError: it is invalid."""
    table = tables.pop("genome")
    normalizer = table.pop("normalizer", None)
    if tables or table.keys() != _KEYS:
        keys = ", ".join([*tables, *table])
        raise ValueError(f"its last table has the keys {keys[:200]}, expected {', '.join(sorted(_KEYS))}")
    generation = table.pop("generation")
    if type(generation) is not int or generation < 0:
        raise ValueError(f"generation is {inline(generation)}, expected a whole number of at least 0")
    genome = from_json(table)
    if normalizer is None:
        return generation, genome, None
    if not isinstance(normalizer, dict) or normalizer.keys() != {"mean", "std"}:
        raise ValueError("normalizer is invalid, expected mean and std")
    decoded = Normalizer(generation, *(np.array(normalizer[name], np.float64) for name in ("mean", "std")))
    decoded.check_state()
    return generation, genome, decoded
