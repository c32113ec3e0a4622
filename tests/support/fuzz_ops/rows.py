"""What rows hold after a queue has said how to fill them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.fuzz_ops.submissions import Genome

_PERTURB = ("perturb_dst", "perturb_src", "perturb_seeds", "perturb_scales", "perturb_spreads")


class Rows:
    """Rows from first_row on, each with what it began with and the mutations since; those before are the caller's."""

    def __init__(self, first_row: int):
        self._first_row = first_row
        self._contents: dict[int, Any] = {}

    def fill(self, taken: Any) -> None:
        """Follows an EpisodeQueueTake: rows to assign, then to initialize, then to perturb."""
        lists = {name: value.numpy() for name, value in taken._asdict().items()}
        assigned = zip(lists["assign_rows"], lists["assign_networks"], lists["assign_thetas"], strict=True)
        for row, network, theta in assigned:
            self._contents[int(row)] = ("theta", int(network), theta.tobytes()), ()
        for row, network, seed in zip(lists["init_rows"], lists["init_networks"], lists["init_seeds"], strict=True):
            self._contents[int(row)] = ("seed", int(network), int(seed)), ()
        for dst, src, seed, scale, spread in zip(*(lists[name].tolist() for name in _PERTURB), strict=True):
            base, chain = (("row", src), ()) if src < self._first_row else self._contents[src]
            self._contents[dst] = base, (*chain, (seed, np.float32(scale).tobytes(), spread))

    def holds(self, row: int, genome: Genome, of_lane: range) -> bool:
        """Whether a row, of those of a lane or of the caller, holds a genome."""
        if genome.source >= 0 and not genome.chain:
            return row == genome.source
        base: Any = ("row", genome.source) if genome.source >= 0 else ("seed", genome.network, genome.seed)
        if genome.theta:
            base = "theta", genome.network, genome.theta
        return row in of_lane and self._contents.get(row) == (base, genome.chain)
