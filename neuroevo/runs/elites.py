"""Reads elites.jsonl: the elite of every finished generation, as metrics_files.py writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroevo.core.genome import Genome
from neuroevo.core.observation_statistics import Normalizer
from neuroevo.runs.genome_json import GenomeReader
from neuroevo.runs.json_lines import DamagedLine, lines
from neuroevo.runs.paths import ELITES


@dataclass(frozen=True)
class Elite:
    """The best genome of a generation.

    Attributes:
        genome: The genome.
        normalizer: What its networks see observations through; None: they see them as they are.
    """

    genome: Genome
    normalizer: Normalizer | None = None


def elites(folder: Path, length: int | None = None) -> Iterator[Elite]:
    """Reads elites.jsonl.

    Args:
        folder: The run's folder.
        length: Bytes to read; None reads all complete lines.

    Yields:
        The elite of each finished generation. Of one that was made from a center the center's name alone is known.

    Raises:
        OSError: The file cannot be read.
        DamagedLine: The file is damaged.
    """
    for _, reader, normalizer in _elites(folder, length):
        yield Elite(reader.genome, normalizer)


def newest_elite(folder: Path, generation: int | None = None, length: int | None = None) -> tuple[int, Elite | None]:
    """Reads elites.jsonl for one elite, in time and memory for what is written there.

    Args:
        folder: The run's folder.
        generation: That of the elite; None is the last one.
        length: Bytes to read; None reads all complete lines.

    Returns:
        The last generation, -1 before there is one, and the elite; None where there is none of that generation.

    Raises:
        OSError: The file cannot be read.
        DamagedLine: The file is damaged.
    """
    last, found = -1, None
    for number, reader, normalizer in _elites(folder, length):
        last = number - 1
        if last == generation:
            found = Elite(reader.genome, normalizer)
    if generation is None and last >= 0:
        found = Elite(reader.genome, normalizer)
    return last, found


def read_elites(folder: Path) -> list[Elite]:
    """Reads all that `elites` yields, which takes memory that grows with the square of the generations.

    Args:
        folder: The run's folder.

    Returns:
        The elite of each finished generation.
    """
    return list(elites(folder))


_Elites = Iterator[tuple[int, GenomeReader, Normalizer | None]]


def _elites(folder: Path, length: int | None) -> _Elites:
    """Yields each line's number, a reader that has just read its genome, and its normalizer."""
    reader = GenomeReader()
    for number, row, _ in lines(folder / ELITES, length):
        try:
            if not {"generation", "elite"} <= row.keys() <= {"generation", "elite", "normalizer"}:
                raise ValueError(f"it has {', '.join(row)}, expected generation, elite and perhaps normalizer")
            reader.read(row["elite"])
            normalizer = _normalizer(row)
        except ValueError as error:
            raise DamagedLine(folder / ELITES, number, error) from None
        yield number, reader, normalizer


def _normalizer(row: Mapping[str, Any]) -> Normalizer | None:
    values = row.get("normalizer")
    if values is None:
        return None
    if not isinstance(values, dict) or values.keys() != {"mean", "std"}:
        raise ValueError(f"this is not a normalizer: {str(values)[:80]}, expected mean and std")
    for name, numbers in values.items():
        if not isinstance(numbers, list) or not all(type(each) in (float, int) for each in numbers):
            raise ValueError(f"{name} of a normalizer is {str(numbers)[:80]}, expected numbers")
    try:
        normalizer = Normalizer(row["generation"], *(np.array(values[name], np.float64) for name in ("mean", "std")))
    except OverflowError as error:  # a whole number of hundreds of digits
        raise ValueError(f"this is not a normalizer: {error}") from None
    normalizer.check_state()
    return normalizer
