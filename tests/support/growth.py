"""What a process holds, sampled again and again, and whether any of it grows: a table of first, median, last and slope.

The rule. The first third of the samples is left out: caches fill, libraries load, and the allocator finds its size. A
quantity grows if its slope is above 0 in the first half of the rest and in the second one, and if over all of the rest
it comes to more than the quantity's tolerance. A slope is the median of the slopes between all pairs of samples
(Theil and Sen), so that neither a step, such as a cache that another kind of run fills, nor a spike is taken for it.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

LEAST_SAMPLES = 12
_MOST_SAMPLES = 400  # maximal number of samples whose pairs are used
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Quantity:
    """Sampled quantity.

    Attributes:
        name: Name with unit.
        tolerance: Change during a soak that does not count as growth.
        share: The tolerance as a share of the median; the larger of the two applies.
    """

    name: str
    tolerance: float = 0.5
    share: float = 0.0


OF_PROCESS = (
    Quantity("memory, MiB", 8, 0.02),
    Quantity("memory of child processes, MiB", 8, 0.05),
    Quantity("shared memory, MiB", 1),
    Quantity("files in /dev/shm"),
    Quantity("temporary files"),
    Quantity("threads"),
    Quantity("descriptors"),
    Quantity("child processes"),
)


def of_process() -> list[float]:
    """Return the values of OF_PROCESS after a garbage collection."""
    gc.collect()
    children = list(_descendants(os.getpid()))
    shared = Path("/dev/shm")
    return [
        _resident("self") / 2**20,
        sum(map(_resident, children)) / 2**20,
        sum(map(_shared, ["self", *children])) / 2**20,
        len(list(shared.iterdir())) if shared.is_dir() else 0,
        len(os.listdir(tempfile.gettempdir())),
        len(os.listdir("/proc/self/task")),
        len(os.listdir("/proc/self/fd")) - 1,  # without that of the listing itself
        len(children),
    ]


def _descendants(process: int) -> Iterator[int]:
    with suppress(OSError):  # it has ended meanwhile
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                yield child
                yield from _descendants(child)


def _resident(process: int | str) -> int:
    """Return the resident bytes of a process; 0 once it has ended."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    return 0


def _shared(process: int | str) -> int:
    """Return the bytes of memory that a process shares with other processes, without files."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssShmem:"):
                return int(line.split()[1]) * 1024
    return 0


@dataclass(frozen=True)
class Row:
    """Table row of a quantity.

    Attributes:
        slope: Per thousand generations, without the first third of the samples.
        grows: Whether it grows by the rule.
    """

    name: str
    first: float
    median: float
    last: float
    slope: float
    grows: bool


@dataclass
class Samples:
    """Samples of quantities during training.

    Attributes:
        title: Description of the activity.
    """

    title: str
    quantities: Sequence[Quantity]
    generations: list[int] = field(default_factory=list)
    values: list[Sequence[float]] = field(default_factory=list)

    def add(self, generations: int, values: Sequence[float]) -> None:
        """Add a sample after a number of generations."""
        assert len(values) == len(self.quantities)
        self.generations.append(generations)
        self.values.append(values)

    def rows(self) -> list[Row]:
        """Return the table. Raise ValueError if there are too few samples."""
        if len(self.generations) < LEAST_SAMPLES:
            raise ValueError(f"{self.title}: {len(self.generations)} samples, expected at least {LEAST_SAMPLES}")
        at, columns = np.array(self.generations, float), np.array(self.values, float).T
        return [_row(quantity, at, column) for quantity, column in zip(self.quantities, columns, strict=True)]

    def table(self) -> str:
        """Format the table as text."""
        head = f"{self.title}: {self.generations[-1]:,} generations, {len(self.generations)} samples"
        lines = [head, f"  {'':36}{'first':>10}{'median':>10}{'last':>10}{'per 1,000':>11}"]
        for row in self.rows():
            numbers = f"{row.first:10,.1f}{row.median:10,.1f}{row.last:10,.1f}{row.slope:+11.3f}"
            lines.append(f"  {row.name:36}{numbers}  {'GROWING' if row.grows else 'flat'}")
        return "\n".join(lines)


def _row(quantity: Quantity, at: np.ndarray, values: np.ndarray) -> Row:
    begin = len(values) // 3
    rest, when = values[begin:], at[begin:]
    middle = len(rest) // 2
    slope, median = _slope(when, rest), float(np.median(rest))
    halves = _slope(when[:middle], rest[:middle]), _slope(when[middle:], rest[middle:])
    tolerance = max(quantity.tolerance, quantity.share * abs(median))
    grows = min(halves) > 0 and slope * (when[-1] - when[0]) > tolerance
    return Row(quantity.name, float(values[0]), median, float(values[-1]), 1000 * slope, grows)


def _slope(at: np.ndarray, values: np.ndarray) -> float:
    """Return the median slope between two samples; of many samples, evenly spaced ones are used."""
    chosen = np.unique(np.linspace(0, len(at) - 1, min(len(at), _MOST_SAMPLES)).astype(int))
    first, second = np.triu_indices(len(chosen), k=1)
    apart, change = (each[chosen][second] - each[chosen][first] for each in (at, values))
    return float(np.median(change[apart > 0] / apart[apart > 0]))


def growing(tables: Sequence[Samples]) -> list[str]:
    """Return the quantities that grow in any of the tables."""
    return [f"{each.title}: {row.name}" for each in tables for row in each.rows() if row.grows]
