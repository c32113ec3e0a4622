"""Storage of genomes in run.db: the tree of core/genome.py, with every ancestor stored once."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neuroevo.core.bounds import MAX_COUNT
from neuroevo.core.genome import GAUSSIAN, Center, Genome, Graft, Kind, LowRank, Scaled, child_digest
from neuroevo.runs.database import Database
from neuroevo.runs.values import checksum

_ROW = tuple[
    int, int | None, int | None, float | None, int | None, int | None, int, bytes, int | None, int | None, int
]  # fmt: skip
_LINES = """
WITH RECURSIVE line (id) AS (
  SELECT value FROM json_each(?)
  UNION SELECT parent FROM genomes JOIN line USING (id) WHERE parent IS NOT NULL
)
SELECT id, parent, seed, scale, rank, center, network, digest, generation, place, checksum
FROM genomes JOIN line USING (id) ORDER BY id
"""
_STEP = tuple[
    int, int | None, float | None, int | None, str | None, int, bytes,
    int | None, str | None, int | None, bytes | None, int | None, int | None, int | None,
]  # fmt: skip
_STEPS = """
SELECT own.id, own.seed, own.scale, own.rank, center.name, own.network, own.digest,
  own.parent, root.name, parent.network, parent.digest, parent.generation, parent.place, parent.checksum
FROM genomes AS own LEFT JOIN centers AS center ON center.id = own.center
LEFT JOIN genomes AS parent ON parent.id = own.parent
LEFT JOIN centers AS root ON root.id = parent.center AND parent.parent IS NULL
WHERE own.id IN (SELECT value FROM json_each(?))
"""


class Step(NamedTuple):
    """Last mutation of a genome, or its root.

    Attributes:
        seed: Seed of the mutation, or of a root's initial weights; 0 if the root is a center.
        scale: Scale of the mutation; 0 for a root.
        born: Generation and index in which the parent first was a member; None if it never was.
        centers: Names of the centers that the mutation changes or is scaled by, or of the center that is the root.
        network: Network of the genome.
    """

    seed: int
    scale: float
    born: tuple[int, int] | None = None
    centers: tuple[str, ...] = ()
    network: int | str = 0


class GenomeWriter:
    """Writer of genomes that caches the row numbers of possible ancestors of the next generation.

    Args:
        database: The run's database.
        known: Row numbers of genomes that are stored already.
    """

    def __init__(self, database: Database, known: Mapping[Genome, int] | None = None):
        self._database = database
        self._known = dict(known or {})
        self._centers: dict[Center, int] = {}
        self._networks: dict[str, int] = {}

    def rows_of(self, genomes: Iterable[Genome]) -> list[int]:
        """Return the row numbers of genomes; insert missing rows, ancestors first."""
        return [self._row_of(genome) for genome in genomes]

    def members(self, genomes: Sequence[Genome], generation: int) -> list[int]:
        """Return rows_of() the members of a generation, and record there where each genome first was a member."""
        numbers = []
        for place, genome in enumerate(genomes):
            if genome in self._known:
                number = self._known[genome]
                self._database.execute(
                    "UPDATE genomes SET generation = ?, place = ?, checksum = ? WHERE id = ? AND generation IS NULL",
                    [generation, place, checksum(genome.digest, generation, place), number],
                )
            else:
                number = self._row_of(genome, generation, place)
            numbers.append(number)
        return numbers

    @property
    def known(self) -> dict[Genome, int]:
        """Row numbers of the genomes that are stored already."""
        return dict(self._known)

    def keep(self, genomes: Iterable[Genome]) -> None:
        """Remove all genomes except these from the cache."""
        self._known = {genome: self._known[genome] for genome in genomes if genome in self._known}
        self._centers.clear()
        self._networks.clear()

    def center(self, center: Center) -> int:
        """Return the row number of a center; insert a missing row, without weights."""
        if center not in self._centers:
            self._database.execute("INSERT OR IGNORE INTO centers (name) VALUES (?)", [center.name])
            self._centers[center] = self._database.row(
                tuple[int], "SELECT id FROM centers WHERE name = ?", [center.name]
            )[0]
        return self._centers[center]

    def _network(self, network: int | str) -> int:
        """Return the number of a network; insert the row of a missing network text."""
        if not isinstance(network, str):
            return network
        if network not in self._networks:
            self._database.execute("INSERT OR IGNORE INTO networks (text) VALUES (?)", [network])
            (row,) = self._database.rows(tuple[int], "SELECT id FROM networks WHERE text = ?", [network])
            self._networks[network] = -row[0]
        return self._networks[network]

    def _row_of(self, genome: Genome, generation: int | None = None, place: int | None = None) -> int:
        missing = []
        for each in genome.line():
            if each in self._known:
                break
            missing.append(each)
        for each in reversed(missing):
            born = (generation, place) if each is genome else (None, None)
            self._known[each] = self._insert(each, *born)
        return self._known[genome]

    def _insert(self, genome: Genome, generation: int | None, place: int | None) -> int:
        network = self._network(genome.network)
        row: dict[str, Any] = {"network": network, "generation": generation, "place": place}
        if genome.parent is None or genome.mutation is None:
            is_center = isinstance(genome.root, Center)
            row["center" if is_center else "seed"] = self.center(genome.root) if is_center else genome.root  # type: ignore[arg-type]
        else:
            seed, scale, kind = genome.mutation
            row |= {"parent": self._known[genome.parent], "seed": seed, "scale": scale}
            row["rank"] = int(kind.rank) if isinstance(kind, LowRank) else None
            row["center"] = self.center(kind.spread) if isinstance(kind, Scaled) else None
        row |= {"digest": genome.digest, "checksum": checksum(genome.digest, generation, place)}
        return self._database.insert("genomes", row)


def read_genomes(
    database: Database, numbers: Iterable[int], births: dict[Genome, tuple[int, int] | None] | None = None
) -> dict[int, Genome]:
    """Read genomes and all of their ancestors.

    Args:
        database: The run's database.
        numbers: Row numbers of the genomes.
        births: Filled with the generation and index in which each genome first was a member, None if it never was.

    Returns:
        The genomes and their ancestors by row number. Centers have weights if these are still stored.

    Raises:
        DamagedError: A row is missing, or does not match its digest.
    """
    wanted = set(numbers)
    rows = database.rows(_ROW, _LINES, [json.dumps(sorted(wanted))])
    centers = _read_centers(database, {row[5] for row in rows if row[5] is not None})
    networks = _read_networks(database, {row[6] for row in rows})
    found: dict[int, Genome] = {}
    for number, *row, digest, generation, place, total in rows:
        try:
            genome = _decode(row, found, centers, networks)
        except (KeyError, TypeError, ValueError) as error:
            raise database.damaged(f"genome {number} is invalid: {error}") from None
        if genome.digest != digest:
            raise database.damaged(f"genome {number} does not match the digest in its row")
        found[number] = genome
        if births is not None:
            births[genome] = _birth(database, number, digest, generation, place, total)
    for missing in wanted - found.keys():
        raise database.damaged(f"genome {missing} is missing")
    return found


def read_steps(database: Database, numbers: Sequence[int]) -> list[Step]:
    """Read the last mutations of genomes, without any ancestors before their parents.

    Args:
        database: The run's database.
        numbers: Row numbers of the genomes.

    Raises:
        DamagedError: A row is missing, or does not match its digest.
    """
    found: dict[int, Step] = {}
    born: dict[int | None, tuple[int, int] | None] = {None: None}  # of parents
    rows = database.rows(_STEP, _STEPS, [json.dumps(numbers)])
    networks = _read_networks(database, {each for row in rows for each in (row[5], row[9]) if each is not None})
    for number, *own, digest, parent, root, origin, before, generation, place, total in rows:
        if parent not in born:
            if before is None:
                raise database.damaged(f"genome {parent} is missing")
            born[parent] = _birth(database, parent, before, generation, place, total)
            if root is not None and Genome(Center.named(root), networks[origin]).digest != before:
                raise database.damaged(f"genome {parent} does not match the digest in its row")
        own[-1] = networks[own[-1]]
        try:
            found[number], expected = _step(own, parent, root, networks.get(origin), before, born[parent])
        except (TypeError, ValueError, struct.error) as error:
            raise database.damaged(f"genome {number} is invalid: {error}") from None
        if digest != expected:
            raise database.damaged(f"genome {number} does not match the digest in its row")
    for missing in set(numbers) - found.keys():
        raise database.damaged(f"genome {missing} is missing")
    return [found[number] for number in numbers]


def _step(
    own: Sequence[Any],
    parent: int | None,
    root: str | None,
    origin: int | str | None,
    before: bytes,
    born: tuple[int, int] | None,
) -> tuple[Step, bytes]:
    """Return a step and its genome's digest. TypeError, ValueError, struct.error: the row is invalid."""
    seed, scale, rank, center, network = own
    named = () if center is None else (center,)
    if parent is None:
        genome = Genome(seed if center is None else Center.named(center), network)
        return Step(seed or 0, 0.0, None, named, network), genome.digest
    kind = _kind(rank, None if center is None else Center.named(center), network, origin)
    named = named if root is None else (*named, root)
    return Step(seed, scale, born, named, network), child_digest(before, seed, scale, kind)


def _kind(rank: int | None, center: Center | None, network: int | str, origin: int | str | None) -> Kind:
    """Return the kind of a mutation, given the networks of the child and of the parent."""
    if network != origin:
        return Graft(str(network))
    if rank is not None:
        return LowRank(rank)
    return GAUSSIAN if center is None else Scaled(center)


def _birth(
    database: Database, number: int, digest: bytes, generation: int | None, place: int | None, total: int
) -> tuple[int, int] | None:
    """Return where a genome first was a member; None if it never was. DamagedError: its row has been changed."""
    if checksum(digest, generation, place) != total:
        raise database.damaged(f"generation or place of genome {number} has been changed")
    if generation is None or place is None:
        return None
    if min(generation, place) < 0:
        raise database.damaged(f"genome {number} is invalid: it has generation {generation} and place {place}")
    return generation, place


def forget_births(database: Database, generation: int) -> None:
    """Clear, in a transaction, the first membership of genomes that first were members in a generation or later."""
    query = "SELECT id, digest FROM genomes WHERE generation >= ?"
    for number, digest in database.rows(tuple[int, bytes], query, [generation]):
        database.execute(
            "UPDATE genomes SET generation = NULL, place = NULL, checksum = ? WHERE id = ?",
            [checksum(digest, None, None), number],
        )


def _decode(
    row: Sequence[Any], known: Mapping[int, Genome], centers: Mapping[int, Center], networks: Mapping[int, int | str]
) -> Genome:
    """Decode a genome. KeyError, TypeError, ValueError: the row is invalid, or its parent's is missing or later."""
    parent, seed, scale, rank, center, number = row
    network = networks[number]
    if parent is None:
        return Genome(seed if center is None else centers[center], network)
    if not abs(scale) <= np.finfo(np.float32).max:
        raise ValueError(f"its scale is {scale}, expected a number that is finite in 32 bits")
    kind = _kind(rank, None if center is None else centers[center], network, known[parent].network)
    return known[parent].child(seed, scale, kind)


def _read_networks(database: Database, numbers: Iterable[int]) -> dict[int, int | str]:
    """Return networks by the numbers stored in genome rows. DamagedError: a number is missing or out of range."""
    found: dict[int, int | str] = {number: number for number in numbers if 0 <= number < MAX_COUNT}
    wanted = sorted(-number for number in set(numbers) - found.keys())
    query = "SELECT id, text FROM networks WHERE id IN (SELECT value FROM json_each(?))"
    if wanted:
        found |= {-number: text for number, text in database.rows(tuple[int, str], query, [json.dumps(wanted)])}
    for number in set(numbers) - found.keys():
        raise database.damaged(f"network {number} of a genome is missing, expected one in [0, {MAX_COUNT}) or a text")
    return found


def _read_centers(database: Database, numbers: Iterable[int]) -> dict[int, Center]:
    """Read centers by row number. DamagedError: the weights of a center do not match its name."""
    query = "SELECT id, name, weights FROM centers WHERE id IN (SELECT value FROM json_each(?))"
    found = {}
    for number, name, weights in database.rows(tuple[int, str, bytes | None], query, [json.dumps(sorted(numbers))]):
        if weights is None:
            found[number] = Center.named(name)
            continue
        try:
            found[number] = Center(np.frombuffer(weights, "<f4"))
        except ValueError as error:
            raise database.damaged(f"the center {name[:80]} is invalid: {error}") from None
        if found[number].name != name:
            raise database.damaged(f"the weights of the center {name[:80]} are those of {found[number].name}")
    return found
