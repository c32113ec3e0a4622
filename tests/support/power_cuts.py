"""Simulated power failures: possible disk contents after each file operation of a run, and whether the run resumes.

    python -m tests.support.power_cuts [--states 2500]

A process that plays a run records its operations on the files below a folder, SQLite's included: see disk_calls.py. A
power cut after any of them leaves what was flushed, and an arbitrary part of the rest: of each write
since its file's last fsync any sectors of 512 bytes, with or without the file's new length, and any of the new, changed
or deleted names since their folder's last fsync, in any order. From each such disk the run must resume with the results
of an uninterrupted run, from no earlier generation than that of the last state stored before the cut, and with the rows
of all generations stored by then.

Shared memory, run.db-shm, does not survive a power cut and is not recorded.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.generation_rows import last_generation
from neuroevo.runs.paths import is_run
from neuroevo.sessions.folder import RunFolder
from tests.support import disk_calls
from tests.support.disk_calls import Call
from tests.support.runs import config, play, results, train

ROOT = Path(__file__).parents[2]
RUN = Path("runs") / "x"  # below the recorded folder, in which there is no runs yet
SECTOR = 512
TOYS: dict[str, dict[str, Any]] = {
    "ga": {"training": {"generations": 3}, "checkpoints": {"keep_last": 1}},
    "normalizer, every 2": {
        "env": {"name": "Hopper-v5"},
        "network": {"name": "mlp", "normalize_observations": True},
        "training": {"generations": 4},
        "checkpoints": {"every": 2, "keep_last": 1},
        "logging": {"trackers": ["tensorboard"]},
    },
    "es": {"algorithm": {"name": "es", "population": 8, "sigma": 0.1}, "training": {"generations": 3}},
}
REAL: dict[str, Any] = {  # played by the native engine
    "env": {"name": "HardMaze-v0"},
    "network": {"name": "mlp", "hidden": [6]},
    "algorithm": {"name": "ga", "population": 6, "parents": 2, "sigma": 0.1, "validation_candidates": 2},
    "training": {"generations": 3, "max_episode_steps": 16, "test_episodes": 1},
    "checkpoints": {"keep_last": 1},
    "hardware": {"threads": 1},
}
KINDS = [*TOYS, "resumed", "real"]
_ROWS = 1 << 32  # marks from here on are numbers of rows, those below numbers of finished generations of states


@dataclass
class Policy:
    """What of the operations since the last fsync is there: each function is asked for every name, sector or length."""

    name: Callable[[], bool]
    sector: Callable[[], bool]
    length: Callable[[], bool]


@dataclass
class Node:
    """File or folder on the simulated disk: its durable initial content, and the operations on it.

    done: by the number of the operation, a function that changes such content. flushed: numbers of its fsyncs.
    """

    folder: bool
    content: Any  # bytes, or names with their nodes
    done: list[tuple[int, Callable[[Any, Policy], Any]]] = field(default_factory=list)
    flushed: list[int] = field(default_factory=list)

    def after(self, count: int, policy: Policy) -> Any:
        """The content after a power cut: count is the number of operations before it."""
        last = self.flushed[at - 1] if (at := bisect_right(self.flushed, count)) else -1
        content = dict(self.content) if self.folder else self.content
        for number, change in self.done:
            if number < count:
                content = change(content, _ALL if number < last else policy)
        return content


def _policy(name: bool, sector: bool, length: bool) -> Policy:
    return Policy(lambda: name, lambda: sector, lambda: length)


_ALL = _policy(True, True, True)


class Disk:
    """A simulated disk, on which recorded calls happen.

    Attributes:
        length: How many operations there are.
        states: Least generation from which a run must resume, by the number of the operation after which this holds; 0
            for a run that has begun.
        rows: In the same way, how many generations have a complete row.
    """

    def __init__(self, base: Path):
        """base: The folder as it is before the calls."""
        self.length = 0
        self.states: list[tuple[int, int]] = []
        self.rows: list[tuple[int, int]] = []
        self._nodes: dict[tuple[int, int], Node] = {}
        self._root = self._found(base)

    def play(self, calls: Iterable[Call]) -> None:
        """Adds the calls to those that were made."""
        for call in calls:
            if call.operation == disk_calls.MARK:
                number = call.number
                (self.rows if number >= _ROWS else self.states).append((self.length, number % _ROWS))
            elif call.operation == disk_calls.SYNC:
                self._nodes[call.node].flushed.append(self.length)
            else:
                self._change(call)
                self.length += 1

    def promised(self, count: int) -> tuple[int | None, int]:
        """What was promised in the first operations: the last state, None before there was a run, and rows."""
        state = max((state for at, state in self.states if at <= count), default=None)
        return state, max((rows for at, rows in self.rows if at <= count), default=0)

    def after(self, count: int, policy: Policy, node: Node | None = None) -> dict[str, bytes]:
        """The disk after a power cut: contents by path, folders' paths with a slash at their end."""
        node = node or self._root
        content = node.after(count, policy)
        if not node.folder:
            return {"": content}
        found = {"/": b""}
        for name, inner in content.items():
            found |= {f"/{name}{path}": data for path, data in self.after(count, policy, inner).items()}
        return found

    def _found(self, path: Path) -> Node:
        status, folder = os.lstat(path), path.is_dir()
        content: Any = {each.name: self._found(each) for each in path.iterdir()} if folder else path.read_bytes()
        node = self._nodes[status.st_dev, status.st_ino] = Node(folder, content)
        return node

    def _place(self, path: str) -> tuple[Node, str]:
        """The folder in which a path's last name is, and the name."""
        *above, name = path.strip("/").split("/")
        node = self._root
        for each in above:
            node = node.after(self.length, _ALL)[each]
        return node, name

    def _change(self, call: Call) -> None:
        change: Callable[[Any, Policy], Any]
        if call.operation in (disk_calls.WRITE, disk_calls.TRUNCATE):
            node, change = self._nodes[call.node], _written(call.number, call.data)
            if call.operation == disk_calls.TRUNCATE:
                change = _cut(call.number)
        elif call.operation == disk_calls.RENAME:
            (node, name), (target, new) = map(self._place, call.names)
            assert node is target, "files are renamed within their folders only"
            change = _named(new, node.after(self.length, _ALL)[name], gone=name)
        elif call.operation == disk_calls.UNLINK:
            node, name = self._place(call.names[0])
            change = _named(None, None, gone=name)
        else:
            folder = call.operation == disk_calls.MKDIR
            made = self._nodes[call.node] = Node(folder, {} if folder else b"")  # its number may come again
            node, name = self._place(call.names[0])
            change = _named(name, made)
        node.done.append((self.length, change))


def _written(at: int, data: bytes) -> Callable[[bytes, Policy], bytes]:
    end = at + len(data)
    pieces = range(at - at % SECTOR, end, SECTOR)

    def change(content: bytes, policy: Policy) -> bytes:
        found = bytearray(content)
        for start in pieces:
            if policy.sector():
                first, last = max(start, at), min(start + SECTOR, end)
                found.extend(bytes(max(0, last - len(found))))
                found[first:last] = data[first - at : last - at]
        if len(found) < end and policy.length():
            found.extend(bytes(end - len(found)))
        return bytes(found)

    return change


def _cut(size: int) -> Callable[[bytes, Policy], bytes]:
    return lambda content, policy: content[:size].ljust(size, b"\0") if policy.length() else content


def _named(new: str | None, node: Node | None, gone: str = "") -> Callable[[dict[str, Node], Policy], dict[str, Node]]:
    def change(names: dict[str, Node], policy: Policy) -> dict[str, Node]:
        if not policy.name():
            return names
        rest = {name: there for name, there in names.items() if name != gone}
        return rest if new is None or node is None else {**rest, new: node}

    return change


def start_or_go_on(path: Path, settings: Config, player: Callable[[RunFolder], Any]) -> int | None:
    """Run `neuroevo train CONFIG --resume DIR`; return the generation that it resumed from, None for a new run."""
    if not is_run(path):
        player(RunFolder.create(path, settings))
        return None
    folder = RunFolder.resume(path, config=settings)
    generation = folder.state.generation
    player(folder)
    return generation


def promise() -> None:
    """Has this process mark in the record when a run has begun, and when a state or rows are stored."""
    opened, added = RunFolder.open, RunFolder.add

    def open_run(folder: RunFolder, *arguments: Any) -> RunFolder:
        answer = opened(folder, *arguments)
        disk_calls.mark(folder.state.generation)
        return answer

    def add(folder: RunFolder, state: Any, records: Any) -> None:
        added(folder, state, records)
        disk_calls.mark(_ROWS + state.generation - len(state.pending))
        if folder._saved is state:
            disk_calls.mark(state.generation)

    RunFolder.open, RunFolder.add = open_run, add  # type: ignore[method-assign]


def made(kind: str) -> tuple[Config, Callable[[RunFolder], Any]]:
    """The configuration of a kind, and what plays it."""
    changes = REAL if kind == "real" else TOYS["ga" if kind == "resumed" else kind]
    return config(**changes), train if kind == "real" else play


def record(kind: str, base: Path) -> Disk:
    """Start or resume a run below a folder in a separate process, and return the recorded disk.

    Raise AssertionError if the recorded operations do not reproduce the files.
    """
    disk, file = Disk(base), base.with_suffix(".calls")
    command = [sys.executable, "-m", "tests.support.power_cuts", "--record", kind, str(base), str(file)]
    subprocess.run(command, check=True, cwd=ROOT, env=disk_calls.environment())
    disk.play(disk_calls.recorded(file))
    assert disk.after(disk.length, _ALL) == _on_disk(base), "something was written that was not recorded"
    return disk


def _on_disk(base: Path) -> dict[str, bytes]:
    files = {f"/{path.relative_to(base)}": path for path in base.rglob("*") if not path.name.endswith("-shm")}
    found = {name + "/" * path.is_dir(): b"" if path.is_dir() else path.read_bytes() for name, path in files.items()}
    return {"/": b"", **found}


def cuts(disk: Disk, rng: random.Random) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Disks after power cuts, without end: every time around after each operation, in random order.

    In six times around each moment has had nothing that was not flushed; all of it; all names, without data; the same
    with lengths, and zeros for data; data without names; and anything.
    """

    def anything() -> Policy:
        shares = [rng.choice((0, 0.1, 0.5, 0.9, 1)) for _ in range(3)]
        return Policy(*(lambda share=share: rng.random() < share for share in shares))  # type: ignore[misc]

    kinds = [(False, False, False), (True, True, True), (True, False, False), (True, False, True), (False, True, True)]
    policies = [lambda kind=kind: _policy(*kind) for kind in kinds] + [anything]
    moments = rng.sample(range(disk.length + 1), disk.length + 1)
    for turn in itertools.count():
        for place, count in enumerate(moments):
            kind = place + turn if turn < len(policies) else -1
            yield count, disk.after(count, policies[kind % len(policies)]())


def put(disk: dict[str, bytes], base: Path) -> None:
    """Puts what a simulated disk holds below a new folder."""
    for path, data in sorted(disk.items()):
        if path.endswith("/"):
            (base / path[1:]).mkdir()
        else:
            (base / path[1:]).write_bytes(data)


def check(
    disk: Disk, settings: Config, player: Callable[[RunFolder], Any], states: int, seed: int = 0
) -> dict[str, Any]:
    """Resume from different disks of a recorded run. Raise AssertionError if a promise is broken.

    Return the number of disks, of different operations, and of disks from which the run started over.
    """
    rng, seen, begun, moments, tries = random.Random(seed), set(), 0, set(), 0
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory, prefix="power-cuts-") as folder:
        whole, base = Path(folder) / "whole", Path(folder) / "cut"
        player(RunFolder.create(whole, settings))
        expected = results(whole)
        for count, after in cuts(disk, rng):
            state, rows = disk.promised(count)
            key = hashlib.sha256(repr((state, rows, sorted(after.items()))).encode()).digest()
            tries += 1
            if key not in seen:
                seen.add(key)
                moments.add(count)
                put(after, base)
                what = f"cut after operation {count} of {disk.length} (seed {seed}, try {tries})"
                try:
                    if tries % 2 and (base / RUN / DATABASE).exists():  # a reader opens it first
                        with Database(base / RUN / DATABASE) as database:
                            found = last_generation(database) + 1
                        assert found >= rows, f"{what}: {found} rows, promised were {rows}"
                    generation = start_or_go_on(base / RUN, settings, player)
                except Exception as error:
                    raise AssertionError(f"{what}: {error!r}") from error
                assert state is None or (generation is not None and generation >= state), (
                    f"{what}: resumes from {generation}, promised was {state}"
                )
                assert results(base / RUN) == expected, f"{what}: other results"
                begun += generation is None
                shutil.rmtree(base)
            if len(seen) >= states or tries > 50 * states:
                break
    return {"operations": disk.length, "states": len(seen), "moments": len(moments), "begun": begun}


def sample(kind: str, states: int, seed: int = 0) -> dict[str, Any]:
    """Record a run of one of KINDS, of which "resumed" resumes after a cut, and check this number of its disks."""
    settings, player = made(kind)
    with tempfile.TemporaryDirectory(prefix="power-cuts-") as folder:
        base = Path(folder).resolve() / "first"
        base.mkdir()
        disk = record(kind, base)
        if kind == "resumed":
            two = next(at for at, generation in disk.states if generation == 2)
            again = base.with_name("again")
            put(disk.after(two - 3, _policy(True, False, True)), again)
            disk = record(kind, again)
            disk.states.append((0, 1))
        return check(disk, settings, player, states, seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=2500, help="in all")
    parser.add_argument("--record", nargs=3, metavar=("KIND", "FOLDER", "FILE"), help="play and record a run")
    given = parser.parse_args()
    if given.record:
        played, base, file = given.record
        settings, player = made(played)
        disk_calls.begin(Path(base), Path(file))
        promise()
        start_or_go_on(Path(base) / RUN, settings, player)
    else:
        found = {kind: sample(kind, -(-given.states // len(KINDS))) for kind in KINDS}
        print(json.dumps(found | {"states": sum(each["states"] for each in found.values())}, indent=1))
