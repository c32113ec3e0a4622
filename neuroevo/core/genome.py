"""Genomes: the seeds that determine a network's weights, instead of the weights (Such et al. 2017, section 3).

A genome is a node of a tree. A root is a seed of initial weights, or a `Center`, a dense vector, for algorithms that
compute weights. Every other genome consists of a parent and one mutation:

    theta(child) = theta(parent) + scale * noise(seed)

The kind of a mutation determines its noise: `GAUSSIAN`, `LowRank` (Sarkar et al. 2025), or `Scaled` weight by weight.
A mutation of kind `Graft` changes the network instead: see networks/grafting.py.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

SEED_BITS = 63  # seeds are non-negative int64, the widest integer that TensorFlow, JSON and NumPy all carry unchanged
CENTER_PREFIX = "sha256:"
MAX_RANK = 64  # maximum rank of low-rank noise
_DIGEST_BYTES = 16


class Center:
    """Dense vector of weights, named by a hash of its contents. Centers with the same name are equal.

    Args:
        vector: D finite numbers, copied as float32 [D].

    Attributes:
        name: "sha256:" and the hash of the vector's bytes in hexadecimal.

    Raises:
        ValueError: The vector is not [D], is empty, or contains a number that is not finite in 32 bits.
    """

    __slots__ = ("__weakref__", "_vector", "name")

    def __init__(self, vector: Sequence[float] | np.ndarray):
        with np.errstate(over="ignore"):
            own = np.array(vector, "<f4")
        if own.ndim != 1 or own.size == 0:
            raise ValueError(f"a center's vector has shape {list(own.shape)}, expected [D]")
        for i in np.flatnonzero(~np.isfinite(own))[:1]:
            raise ValueError(f"weight {i} of a center is {vector[i]}, expected a number that is finite in 32 bits")
        own.flags.writeable = False
        self._vector: np.ndarray | None = own
        self.name: str = CENTER_PREFIX + hashlib.sha256(own.tobytes()).hexdigest()

    @classmethod
    def named(cls, name: str) -> Center:
        """Make a center from its name alone; reading its vector raises LookupError.

        Args:
            name: The name of another center.

        Returns:
            A center that is equal to the other center.
        """
        center = cls.__new__(cls)
        center._vector, center.name = None, name
        return center

    @property
    def vector(self) -> np.ndarray:
        """Return the weights, float32 [D], read-only.

        Raises:
            LookupError: Only the name is known.
        """
        if self._vector is None:
            raise LookupError(f"the weights of the center {self.name} are not loaded, only its name")
        return self._vector

    @property
    def has_weights(self) -> bool:
        """Whether the vector is known, in addition to the name."""
        return self._vector is not None

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, Center) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Center({self.name[: len(CENTER_PREFIX) + 12]})"


@dataclass(frozen=True)
class Gaussian:
    """Independent standard normal noise for each weight.

    Attributes:
        materialized: Whether mutated weights exist as a vector, so that genomes can have children; every kind has it.
    """

    materialized: ClassVar[bool] = True

    def __str__(self) -> str:
        return "Gaussian"


@dataclass(frozen=True)
class LowRank:
    """Low-rank noise, a product of thin matrices in each layer: custom_ops/networks/low_rank.h.

    Networks are evaluated without materializing the weights of such a genome, which therefore cannot have children.

    Attributes:
        rank: Number of columns of the thin matrices, in [1, MAX_RANK].
    """

    materialized: ClassVar[bool] = False
    rank: int

    def __post_init__(self) -> None:
        if not _is_whole(self.rank) or not 1 <= self.rank <= MAX_RANK:
            raise ValueError(f"rank of a mutation is {str(self.rank)[:80]}, expected a whole number in [1, {MAX_RANK}]")

    def __str__(self) -> str:
        return f"low rank {self.rank}"


@dataclass(frozen=True)
class Scaled:
    """Gaussian noise with a separate standard deviation for each weight.

    Attributes:
        spread: The standard deviation of each weight.
    """

    materialized: ClassVar[bool] = True
    spread: Center

    def __str__(self) -> str:
        return "scaled"


@dataclass(frozen=True)
class Graft:
    """Change of the network, which inherits the weights that both networks have in common (networks/grafting.py).

    The scale of the mutation multiplies the initial weights of all other weights.

    Attributes:
        network: The new network's text.
    """

    materialized: ClassVar[bool] = True
    network: str

    def __str__(self) -> str:
        return f"graft {self.network}"


Kind = Gaussian | LowRank | Scaled | Graft
"""The kinds of a mutation."""
GAUSSIAN = Gaussian()


class Mutation(NamedTuple):
    """Mutation that turns a parent into a child.

    Attributes:
        seed: Seed of the noise, in [0, 2**63).
        scale: Factor of the noise, a value that float32 represents exactly.
        kind: Kind of the noise.
    """

    seed: int
    scale: float
    kind: Kind = GAUSSIAN


class Genome:
    """Immutable genome: a root, or a child of another genome. Genomes with the same digest are equal.

    Args:
        root: Seed of the initial weights, in [0, 2**63), or a Center.
        network: Index of the network in the evaluator's list of networks, or the text of the genome's own network in
            the core's form: custom_ops/networks/network.h.

    Attributes:
        root: Root of the genome's tree.
        network: The network, as above; a Graft changes it.
        parent: The genome without its last mutation; None for a root.
        mutation: The last mutation; None for a root.
        depth: Number of mutations between the root and the genome.
        digest: A hash of the root and all mutations, 16 bytes.

    Raises:
        ValueError: The root is neither a Center nor a seed.
    """

    __slots__ = _FIELDS = ("root", "network", "parent", "mutation", "depth", "digest")
    root: int | Center
    network: int | str
    parent: Genome | None
    mutation: Mutation | None
    depth: int
    digest: bytes

    def __init__(self, root: int | Center, network: int | str = 0):
        root = root if isinstance(root, Center) else _checked_seed("root", root)
        name = root.name if isinstance(root, Center) else str(root)
        network = network if isinstance(network, str) else int(network)
        self._set(root, network, None, None, 0, _hash(f"{name}/{network}".encode()))

    def child(self, seed: int, scale: float, kind: Kind = GAUSSIAN) -> Genome:
        """Return a child of the genome.

        Args:
            seed: Seed of the noise, in [0, 2**63).
            scale: Factor of the noise, a value that float32 represents exactly.
            kind: Kind of the noise.

        Returns:
            The child.

        Raises:
            ValueError: The seed is out of range, this genome cannot have children since its last mutation is of low
                rank, or a graft's network equals this genome's network.
        """
        if not self.kind.materialized:
            raise ValueError(f"a genome's last mutation is of {self.kind}: it cannot have a child")
        if isinstance(kind, Graft) and kind.network == self.network:
            raise ValueError(f"a graft's network is '{kind.network}', expected another network than the parent's")
        mutation = Mutation(_checked_seed("seed", seed), float(scale) + 0.0, kind)  # no -0.0: databases lose its sign
        child, network = Genome.__new__(Genome), kind.network if isinstance(kind, Graft) else self.network
        child._set(self.root, network, self, mutation, self.depth + 1, child_digest(self.digest, *mutation))
        return child

    @property
    def kind(self) -> Kind:
        """Return the kind of the last mutation; Gaussian for a root."""
        return GAUSSIAN if self.mutation is None else self.mutation.kind

    @property
    def mutations(self) -> tuple[Mutation, ...]:
        """Return all mutations, starting from the root."""
        return tuple(reversed([each.mutation for each in self.line() if each.mutation is not None]))

    @property
    def first_network(self) -> int | str:
        """Return the network of the root."""
        return next(each.network for each in self.line() if each.parent is None)

    def line(self) -> Iterator[Genome]:
        """Iterate over the genome, its parent, and so on to the root."""
        at: Genome | None = self
        while at is not None:
            yield at
            at = at.parent

    def _set(self, *values: object) -> None:
        for name, value in zip(self._FIELDS, values, strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of a genome cannot be changed: genomes are immutable")

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Genome) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Genome({self.root}, network={self.network}, depth={self.depth}, digest={self.digest.hex()})"

    def __reduce__(self) -> tuple[object, ...]:  # without the parent, to avoid recursion
        return _rebuild, (self.root, self.first_network, self.mutations)


def child_digest(parent: bytes, seed: int, scale: float, kind: Kind = GAUSSIAN) -> bytes:
    """Return the digest of a mutation's child, given its parent's digest."""
    name = "" if isinstance(kind, Gaussian) else kind.spread.name if isinstance(kind, Scaled) else str(kind)
    return _hash(parent + struct.pack("<qd", seed, scale) + name.encode())


def grow(genome: Genome, mutations: Iterable[tuple[int, float] | Mutation]) -> Genome:
    """Return the descendant of a genome after several mutations.

    Args:
        genome: The ancestor.
        mutations: Seed, scale and, unless it is Gaussian, kind of each mutation, in order.
    """
    for mutation in mutations:
        genome = genome.child(*mutation)
    return genome


def to_json(genome: Genome) -> dict[str, Any]:
    """Return a genome as plain values for JSON. Readers must not convert its 63-bit seeds to floats.

    Args:
        genome: The genome.

    Returns:
        root (a seed, or a center's name), network (of the root), and mutations: seed, scale and, unless it is Gaussian,
        kind of each mutation. Kinds are "low rank 4", the name of the center that multiplies the noise, or "graft" and
        the text of the new network.
    """
    mutations: list[list[object]] = []
    for seed, scale, kind in genome.mutations:
        name = kind.spread.name if isinstance(kind, Scaled) else str(kind)
        mutations.append([seed, scale] if isinstance(kind, Gaussian) else [seed, scale, name])
    root = genome.root.name if isinstance(genome.root, Center) else genome.root
    return {"root": root, "network": genome.first_network, "mutations": mutations}


def from_json(values: Mapping[str, Any]) -> Genome:
    """Return the genome that to_json() converted to plain values.

    Args:
        values: The values, which need not be valid.

    Raises:
        ValueError: A value is invalid, or a center is named, whose weights the values do not contain.
    """
    network, mutations = values["network"], values["mutations"]
    if not isinstance(network, str) and not (_is_whole(network) and network >= 0):
        raise ValueError(f"network of a genome is {str(network)[:80]}, expected a text or a whole number of at least 0")
    if not isinstance(mutations, list):
        raise ValueError(f"mutations of a genome are {str(mutations)[:80]}, expected a list")
    genome = Genome(values["root"], network)
    for index, mutation in enumerate(mutations):
        try:
            seed, scale, *name = mutation
            if not isinstance(scale, float) or float(np.float32(scale)) != scale:
                raise ValueError(f"scale is {str(scale)[:80]}, expected a number of 32 bits")
            genome = genome.child(seed, scale, *map(_kind_named, name))
        except (TypeError, ValueError) as error:
            raise ValueError(f"mutation {index} of a genome is {str(mutation)[:80]}: {error}") from None
    return genome


def _kind_named(name: object) -> Kind:
    """Return the kind of a name, as in to_json(). ValueError: it is no kind, or a center."""
    word, _, rest = str(name).rpartition(" ") if str(name).startswith("low rank ") else str(name).partition(" ")
    if word == "low rank" and rest.isdecimal():
        return LowRank(int(rest))
    if word == "graft":
        return Graft(rest)
    raise ValueError(f"its kind is {str(name)[:80]}, expected 'low rank' and a rank, or 'graft' and a network")


def _rebuild(root: int | Center, network: int | str, mutations: Iterable[Mutation]) -> Genome:
    return grow(Genome(root, network), mutations)


def _is_whole(number: object) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _checked_seed(name: str, seed: int) -> int:
    if not _is_whole(seed) or not 0 <= int(seed) < 2**SEED_BITS:
        raise ValueError(f"{name} of a genome is {str(seed)[:80]}, expected a whole number in [0, 2**{SEED_BITS})")
    return int(seed)


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
