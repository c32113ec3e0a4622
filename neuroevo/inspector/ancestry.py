"""Ancestry: the lineage of a member, other offspring of its ancestors, and shares of descendants per generation."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroevo.core.errors import UserError
from neuroevo.core.genome import Center
from neuroevo.inspector.payload import array
from neuroevo.inspector.survey import Survey

_MOST_RELATIVES = 6000  # maximum number of lines in the browser's plot
_NAMED = 7  # ancestors with a separate color
_UNKNOWN = -1


def family(survey: Survey, generation: int, index: int) -> dict[str, Any]:
    """Return the family tree of a member.

    Args:
        survey: Survey of the member's run.
        generation: Generation of the member.
        index: Index of the member in its generation.

    Returns:
        `line`: the member and its ancestors, the youngest first: generation, index, fitness, point in the cloud, seed
        and scale of the last mutation, number of offspring, and number of generations with offspring. `relatives`: the
        offspring of the line outside of it, as arrays of generation and fitness of the parent and of the child; a
        sample if there are too many. `all`: the number of relatives.

    Raises:
        UserError: The member does not exist, or one of its ancestors is not stored.
    """
    members = survey.run.members
    line, genome = members.lineage(generation, index), members.genome(generation, index)
    key = {place: number for number, place in enumerate(line)}
    offspring, spans = np.zeros(len(line), np.int64), np.zeros(len(line), np.int64)
    relatives = []
    for later in range(line[-1][0] + 1, min(generation + 1, len(survey.parents))):
        parents, fitness = survey.parents[later], survey.fitness[later]
        if parents is None or fitness is None:
            continue
        pairs, inverse, counts = np.unique(parents, axis=0, return_inverse=True, return_counts=True)
        numbers = np.array([key.get((int(a), int(b)), _UNKNOWN) for a, b in pairs])
        for number, count in zip(numbers, counts, strict=True):
            if number != _UNKNOWN:
                offspring[number] += count
                spans[number] += 1
        of = numbers[inverse.reshape(-1)]
        own = next((which for number, which in line if number == later), None)
        children = np.flatnonzero(of != _UNKNOWN)
        relatives += [(later, fitness[child], of[child]) for child in children if child != own]
    records: list[dict[str, Any]] = []
    for place, ((number, which), ancestor) in enumerate(zip(line, genome.line(), strict=False)):
        reached, point = survey.member(number, which)
        seed = ancestor.root if ancestor.mutation is None else ancestor.mutation.seed
        records.append(
            {
                "generation": number,
                "index": which,
                "fitness": reached,
                "point": [float(each) if np.isfinite(each) else None for each in point],
                "seed": "0" if isinstance(seed, Center) else str(seed),  # a browser's numbers have 53 bits
                "scale": 0.0 if ancestor.mutation is None else ancestor.mutation.scale,
                "offspring": int(offspring[place]),
                "generations": int(spans[place]),
            }
        )
    shown = relatives[:: max(len(relatives) // _MOST_RELATIVES, 1)]
    ends = np.array([(later, value) for later, value, _ in shown], np.float64)
    begins = np.array([(line[of][0], float(records[of]["fitness"])) for _, _, of in shown], np.float64)
    drawn = {"parents": array(begins), "children": array(ends)}
    return {"line": records, "relatives": drawn, "all": len(relatives)}


def dominance(survey: Survey, begin: int) -> dict[str, Any]:
    """Compute the share of each later population that descends from the members of a generation.

    Args:
        survey: Survey of the run.
        begin: The generation of the ancestors.

    Returns:
        `generations`, [G]; `ancestors`: index and descendants' shares [G] of the members with the most descendants;
        `others`: shares of descendants of the generation's other members; `older`: shares of members that do not
        descend from this generation; `left`: number of ancestors with descendants in each generation.

    Raises:
        UserError: The generation does not exist, or its members are not stored.
    """
    ends = len(survey.parents)
    first = survey.parents[begin] if 0 <= begin < ends else None
    if first is None:
        raise UserError(f"the members of generation {begin} are not stored, expected a generation in [0, {ends})")
    clades: dict[int, np.ndarray] = {begin: np.arange(len(first))}
    for later in range(begin + 1, ends):
        parents = survey.parents[later]
        if parents is None:
            continue
        clade = np.full(len(parents), _UNKNOWN)
        for source in np.unique(parents[:, 0]):
            known = clades.get(int(source))
            if known is not None:
                mine = (parents[:, 0] == source) & (parents[:, 1] < len(known))
                clade[mine] = known[parents[mine, 1]]
        clades[later] = clade
    numbers = list(clades)
    shares = np.zeros((len(numbers), len(first)))
    for row, clade in enumerate(clades.values()):
        descended = clade[clade != _UNKNOWN]
        shares[row] = np.bincount(descended, minlength=len(first)) / len(clade)
    most = np.argsort(-shares.sum(axis=0), kind="stable")[:_NAMED] if len(first) else np.zeros(0, int)
    most = most[shares[1:, most].sum(axis=0) > 0]
    named = shares[:, most]
    together = shares.sum(axis=1)
    return {
        "begin": begin,
        "generations": array(np.array(numbers, np.int32)),
        "ancestors": [
            {"index": int(which), "shares": array(column.astype(np.float32))}
            for which, column in zip(most, named.T, strict=True)
        ],
        "others": array((together - named.sum(axis=1)).astype(np.float32)),
        "older": array((1 - together).astype(np.float32)),
        "left": array((shares > 0).sum(axis=1).astype(np.int32)),
    }
