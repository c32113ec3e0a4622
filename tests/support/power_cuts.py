"""Power cuts, simulated: what a disk may hold after each operation of a run on files, and whether the run goes on.

    python -m tests.support.power_cuts [--states 2500]

Every operation of a run on the files below a folder is recorded while it really happens. A power cut after any of them
leaves what was flushed, and of the rest whatever the file system had got to: each write since its file's last fsync may
be there, be missing, be torn, or be zeros, and so may each new, changed or deleted name since its folder's last fsync,
in any order. From each such disk the run must go on, with the results of a run that was left alone, and from no earlier
generation than that of the last checkpoint that was written before the cut.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroevo.config.schema import Config
from neuroevo.runs.checkpoints import Checkpoints
from neuroevo.runs.folder import RunFolder
from neuroevo.runs.paths import CONFIG, MEMBERS
from tests.support.disk_calls import Call, intercepted
from tests.support.runs import config, play, results, train

RUN = Path("runs") / "x"  # below the recorded folder, in which there is no runs yet
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


@dataclass
class Node:
    """A file or a folder on the simulated disk: what it held in the beginning, durably, and what was done to it.

    done: by the number of the operation, a function that changes such content. flushed: numbers of its fsyncs.
    """

    folder: bool
    content: Any  # bytes, or names with their nodes
    done: list[tuple[int, Callable[[Any, float], Any]]] = field(default_factory=list)
    flushed: list[int] = field(default_factory=list)


class Recorder:
    """A hook of intercepted() that records operations.

    length: how many there are. promises: by the number of the operation after which it holds, the generation from
    which a run goes on at the latest; 0 for a run that has begun.
    """

    def __init__(self, base: Path):
        self.length = 0
        self.promises: list[tuple[int, int]] = []
        self._base = base
        self._nodes: dict[tuple[int, int], Node] = {}
        self.root = self._found(base)

    def __call__(self, name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], call: Call) -> Any:
        if name == "io.open":
            mode = arguments[1] if len(arguments) > 1 else keywords.get("mode", "r")
            assert not set(mode) & set("wax+"), f"{arguments} is written in a way that is not recorded"
            return call()
        if name in ("stat", "lstat", "fstat", "listdir", "scandir", "readlink", "read", "pread", "close"):
            return call()
        return getattr(self, f"_{name}")(arguments, keywords, call)

    def promised(self, count: int) -> int | None:
        """The last generation that was promised in the first operations; None: there was no run yet."""
        return max((generation for at, generation in self.promises if at <= count), default=None)

    def written(self, count: int, choose: Callable[[Node], list[float]], node: Node | None = None) -> dict[str, bytes]:
        """The disk after a power cut: contents by path, folders' paths with a slash at their end.

        count: operations before it. choose: for a node, how much of each operation on it since it was last flushed is
        there: 1.0 all, 0.0 nothing, a share of it that is torn, or if negative zeros in the place of data.
        """
        node = node or self.root
        last = max((at for at in node.flushed if at <= count), default=-1)
        content = dict(node.content) if node.folder else node.content
        for at, change in node.done:
            if at < last:
                content = change(content, 1.0)
        open_ends = [change for at, change in node.done if last <= at < count]
        for change, share in zip(open_ends, choose(node)[: len(open_ends)], strict=True):
            content = change(content, share)
        if not node.folder:
            return {"": content}
        found = {"/": b""}
        for name, inner in content.items():
            below = self.written(count, choose, inner)
            found |= {f"/{name}{path}": data for path, data in below.items()}
        return found

    def _found(self, path: Path) -> Node:
        status = os.lstat(path)
        content: Any = (
            path.read_bytes() if path.is_file() else {each.name: self._found(each) for each in path.iterdir()}
        )
        node = self._nodes[status.st_dev, status.st_ino] = Node(path.is_dir(), content)
        return node

    def _node(self, what: Any, folder: int | None = None) -> Node:
        status = os.stat(what, dir_fd=folder)
        return self._nodes[status.st_dev, status.st_ino]

    def _place(self, path: Any, folder: int | None) -> tuple[Node, str]:
        """The folder in which a path's last name is, and the name."""
        above, name = os.path.split(os.fspath(path))
        return (self._node(folder) if folder is not None and not above else self._node(above or ".", folder)), name

    def _note(self, node: Node, change: Callable[[Any, float], Any]) -> None:
        node.done.append((self.length, change))
        self.length += 1

    def _new(self, node: Node, name: str, made: Node, path: Any, folder: int | None) -> None:
        status = os.stat(path, dir_fd=folder)
        self._nodes[status.st_dev, status.st_ino] = made  # the number of one that is gone may come again
        self._note(node, lambda names, share: {**names, name: made} if share > 0 else names)

    def _open(self, arguments: tuple[Any, ...], keywords: dict[str, Any], call: Call) -> int:
        path, flags, folder = arguments[0], arguments[1], keywords.get("dir_fd")
        new = bool(flags & os.O_CREAT) and not _there(path, folder)
        answer = int(call())
        if new:
            self._new(*self._place(path, folder), Node(False, b""), path, folder)
        assert not flags & os.O_TRUNC, "this is not recorded"
        return answer

    def _mkdir(self, arguments: tuple[Any, ...], keywords: dict[str, Any], call: Call) -> None:
        call()
        path, folder = arguments[0], keywords.get("dir_fd")
        self._new(*self._place(path, folder), Node(True, {}), path, folder)

    def _write(self, arguments: tuple[Any, ...], _: dict[str, Any], call: Call) -> int:
        file, data = arguments[0], bytes(arguments[1])
        at = os.fstat(file).st_size  # all files here are new or appended to
        count = int(call())
        assert os.fstat(file).st_size == at + count

        def change(content: bytes, share: float) -> bytes:
            there = data[: int(abs(share) * count)]
            if share == 0:
                return content
            if share < 0:
                there = bytes(len(there))
            return content[:at].ljust(at, b"\0") + there + content[at + len(there) :]

        self._note(self._node(file), change)
        return count

    def _ftruncate(self, arguments: tuple[Any, ...], _: dict[str, Any], call: Call) -> None:
        call()
        file, size = arguments
        self._note(self._node(file), lambda content, share: content[:size].ljust(size, b"\0") if share > 0 else content)

    def _replace(self, arguments: tuple[Any, ...], keywords: dict[str, Any], call: Call) -> None:
        node, name = self._place(arguments[0], keywords.get("src_dir_fd"))
        target, new = self._place(arguments[1], keywords.get("dst_dir_fd"))
        assert node is target, "files are renamed within their folders only"
        moved = self._node(arguments[0], keywords.get("src_dir_fd"))
        call()

        def change(names: dict[str, Node], share: float) -> dict[str, Node]:
            if share <= 0:
                return names
            return {**{each: there for each, there in names.items() if each != name}, new: moved}

        self._note(node, change)

    _rename = _replace

    def _unlink(self, arguments: tuple[Any, ...], keywords: dict[str, Any], call: Call) -> None:
        node, name = self._place(arguments[0], keywords.get("dir_fd"))
        call()

        def change(names: dict[str, Node], share: float) -> dict[str, Node]:
            return {each: there for each, there in names.items() if share <= 0 or each != name}

        self._note(node, change)

    _remove = _unlink

    def _fsync(self, arguments: tuple[Any, ...], _: dict[str, Any], call: Call) -> None:
        call()
        self._node(arguments[0]).flushed.append(self.length)


def _there(path: Any, folder: int | None) -> bool:
    try:
        os.stat(path, dir_fd=folder, follow_symlinks=False)
        return True
    except FileNotFoundError:
        return False


@contextmanager
def promising(recorder: Recorder) -> Iterator[None]:
    """Notes when a run has begun, and when each checkpoint was written."""
    opened, saved = RunFolder.open, Checkpoints.save

    def open_run(folder: RunFolder, *arguments: Any) -> RunFolder:
        answer = opened(folder, *arguments)
        recorder.promises.append((recorder.length, 0))
        return answer

    def save(checkpoints: Checkpoints, run: Any, checkpoint: Any) -> None:
        saved(checkpoints, run, checkpoint)
        if _there(run.path / CONFIG, None):
            recorder.promises.append((recorder.length, checkpoint.state.generation))

    RunFolder.open, Checkpoints.save = open_run, save  # type: ignore[method-assign]
    try:
        yield
    finally:
        RunFolder.open, Checkpoints.save = opened, saved  # type: ignore[method-assign]


def record(base: Path, settings: Config, player: Callable[[RunFolder], Any]) -> Recorder:
    """Starts a run below a folder, or goes on with it, and records it.

    AssertionError: what was recorded does not make the files that are there.
    """
    recorder = Recorder(base)
    with intercepted(base, recorder), promising(recorder):
        start_or_go_on(base / RUN, settings, player)
    whole = recorder.written(recorder.length, lambda node: [1.0] * len(node.done))
    assert whole == _on_disk(base), "something was written that was not recorded"
    return recorder


def start_or_go_on(path: Path, settings: Config, player: Callable[[RunFolder], Any]) -> int | None:
    """Does what `neuroevo train CONFIG --resume DIR` does. The generation that it went on from; None if it began."""
    if not (path / CONFIG).is_file():
        player(RunFolder.create(path, settings))
        return None
    folder = RunFolder.resume(path, config=settings)
    generation = folder.state.generation
    player(folder)
    return generation


def _on_disk(base: Path) -> dict[str, bytes]:
    files = {f"/{path.relative_to(base)}": path for path in base.rglob("*")}
    found = {name + "/" * path.is_dir(): b"" if path.is_dir() else path.read_bytes() for name, path in files.items()}
    return {"/": b"", **found}


def cuts(recorder: Recorder, rng: random.Random) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Disks after power cuts, without end: after one operation after another, with other losses every time around.

    First nothing that was not flushed is there; then all; then all names, without data; then data without names; then
    names alone up to a moment, as journals keep them; then anything.
    """

    def all_of(names: float, data: float) -> Callable[[Node], list[float]]:
        return lambda node: [names if node.folder else data] * len(node.done)

    def anything(node: Node) -> list[float]:
        shares = [rng.choice((0.0, 1.0, rng.random(), -rng.random(), -1.0)) for _ in node.done]
        return [float(share > 0) for share in shares] if node.folder else shares

    policies = [all_of(0, 0), all_of(1, 1), all_of(1, 0), all_of(0, 1), all_of(1, -1), all_of(1, 0.5)]
    while True:
        choose = policies.pop(0) if policies else anything
        for count in range(recorder.length + 1):
            yield count, recorder.written(count, choose)


def put(disk: dict[str, bytes], base: Path) -> None:
    """Puts what a simulated disk holds below an empty folder."""
    for path, data in sorted(disk.items()):
        if path.endswith("/"):
            (base / path[1:]).mkdir(exist_ok=True)
        else:
            (base / path[1:]).write_bytes(data)


def check(
    recorder: Recorder, settings: Config, player: Callable[[RunFolder], Any], states: int, seed: int = 0
) -> dict[str, Any]:
    """Goes on from different disks of a recorded run. AssertionError: not with what was promised.

    Returns how many there were, after how many different operations, and from how many a run was begun anew.
    """
    rng, seen, begun, moments, tries = random.Random(seed), set(), 0, set(), 0
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=in_memory, prefix="power-cuts-") as folder:
        whole = Path(folder) / "whole"
        player(RunFolder.create(whole, settings))
        expected, members = results(whole), (whole / MEMBERS).read_bytes()
        for count, disk in cuts(recorder, rng):
            promised = recorder.promised(count)
            key = hashlib.sha256(repr((promised, sorted(disk.items()))).encode()).digest()
            tries += 1
            if key not in seen:
                seen.add(key)
                moments.add(count)
                base = Path(folder) / "cut"
                base.mkdir()
                put(disk, base)
                what = f"cut after operation {count} of {recorder.length} (seed {seed}, try {tries})"
                try:
                    generation = start_or_go_on(base / RUN, settings, player)
                except Exception as error:
                    raise AssertionError(f"{what}: {error!r}") from error
                assert promised is None or (generation is not None and generation >= promised), (
                    f"{what}: goes on from {generation}, promised was {promised}"
                )
                assert results(base / RUN) == expected, f"{what}: other results"
                assert (base / RUN / MEMBERS).read_bytes() == members, f"{what}: other members"
                begun += generation is None
                shutil.rmtree(base)
            if len(seen) >= states or tries > 50 * states:
                break
    return {"operations": recorder.length, "states": len(seen), "moments": len(moments), "begun": begun}


def sample(kind: str, states: int, seed: int = 0) -> dict[str, Any]:
    """Records one of TOYS, or "real", or "resumed", which goes on after a cut; and checks so many of its disks."""
    changes = REAL if kind == "real" else TOYS["ga" if kind == "resumed" else kind]
    settings, player = config(**changes), train if kind == "real" else play
    with tempfile.TemporaryDirectory(prefix="power-cuts-") as folder:
        base = Path(folder).resolve() / "first"
        base.mkdir()
        recorder = record(base, settings, player)
        if kind == "resumed":
            two = next(at for at, generation in recorder.promises if generation == 2)
            again = Path(folder).resolve() / "again"
            again.mkdir()
            put(recorder.written(two - 3, lambda node: [1.0 if node.folder else 0.5] * len(node.done)), again)
            recorder = record(again, settings, player)
            recorder.promises.append((0, 1))
        return check(recorder, settings, player, states, seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--states", type=int, default=2500, help="in all")
    wanted = parser.parse_args().states
    kinds = [*TOYS, "resumed", "real"]
    found = {kind: sample(kind, -(-wanted // len(kinds))) for kind in kinds}
    print(json.dumps(found | {"states": sum(each["states"] for each in found.values())}, indent=1))
