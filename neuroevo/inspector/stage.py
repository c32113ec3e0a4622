"""Queue that plays members sequentially in a separate thread and caches their playback."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuroevo.core.errors import DiskError, EnvironmentFailure, NativeError, UserError
from neuroevo.inspector.inspected_run import InspectedRun
from neuroevo.inspector.payload import plain
from neuroevo.inspector.playing import Member, play
from neuroevo.system.files import open_folder

log = logging.getLogger("neuroevo")
_KEPT = 200  # cached videos
_FOLDER = "neuroevo-inspect-"  # prefix of folders of videos
_NEW = 60.0  # seconds after which a new folder is certainly locked
Key = tuple[int, Member]


class _Closed(Exception):
    """The stage was closed during playback."""


class Stage:
    """Playback queue and cache; use it as a context manager, which stops the thread and deletes the videos."""

    def __init__(self, runs: Sequence[InspectedRun]):
        """Create the queue; the context manager starts its thread.

        Args:
            runs: The runs whose members can be played.
        """
        self._runs = runs
        self._done: OrderedDict[Key, dict[str, Any]] = OrderedDict()
        self._waiting: OrderedDict[Key, None] = OrderedDict()
        self._now: tuple[Key, int] | None = None
        self._change = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="stage", daemon=True)

    def __enter__(self) -> Stage:
        _delete_abandoned()
        self._folder = tempfile.TemporaryDirectory(prefix=_FOLDER)
        self._lock = os.open(self._folder.name, os.O_RDONLY | os.O_CLOEXEC)
        with suppress(OSError):  # file systems without locks, where _delete_abandoned() deletes nothing
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()
        self._thread.join()
        self._folder.cleanup()
        os.close(self._lock)

    def state(self, run: int, member: Member) -> dict[str, Any]:
        """Return the state of a member's playback, which is queued if it has not been requested before.

        Args:
            run: Index of the run.
            member: The member and its episode.

        Returns:
            {"state": "done", ...} with the result of playing.play(), "failed" with the error, or "playing" or "waiting"
            with the steps so far.
        """
        key = run, member
        with self._change:
            if key in self._done:
                self._done.move_to_end(key)
                return self._done[key]
            if self._now is not None and self._now[0] == key:
                return {"state": "playing", "steps": self._now[1]}
            self._waiting[key] = None
            self._waiting.move_to_end(key)
            self._change.notify_all()
            return {"state": "waiting", "steps": 0}

    def play(self, run: int, member: Member) -> dict[str, Any]:
        """Play a member and return its final state(), blocking until playback is done or has failed."""
        while True:
            now = self.state(run, member)
            if now["state"] in ("done", "failed"):
                return now
            with self._change:
                self._change.wait(0.05)

    def video(self, name: str) -> Path | None:
        """Return the file of a video by its name; None for an unknown name."""
        with self._change:
            known = any(done.get("file") == name for done in self._done.values())
        return Path(self._folder.name) / name if known else None

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._waiting and not self._closed:
                    self._change.wait()
                if self._closed:
                    return
                key, _ = self._waiting.popitem()
                self._now = key, 0
            try:
                result = self._play(*key)
            except _Closed:
                return
            with self._change:
                self._now = None
                self._done[key] = result
                old = self._done.popitem(last=False)[1] if len(self._done) > _KEPT else {}
                self._change.notify_all()
            if "file" in old:
                (Path(self._folder.name) / old["file"]).unlink(missing_ok=True)

    def _play(self, run: int, member: Member) -> dict[str, Any]:
        name = f"{run}-{member.generation}-{member.index}-{member.episode}.mp4"

        def on_step(step: int) -> None:
            if self._closed:
                raise _Closed
            self._now = (run, member), step

        try:
            played = play(self._runs[run], member, Path(self._folder.name) / name, on_step)
        except (UserError, DiskError, EnvironmentFailure, NativeError, OSError) as error:
            return {"state": "failed", "error": str(error)}
        except _Closed:
            raise
        except Exception as error:  # exceptions of custom environments must not stop the page
            log.exception("playback of member %d of generation %d failed", member.index, member.generation)
            return {"state": "failed", "error": f"{type(error).__name__}: {error}"}
        return {"state": "done", **plain(played), **({"file": name} if played["video"] else {})}


def _delete_abandoned() -> None:
    """Delete this user's folders of videos that no process has locked, which killed processes left behind."""
    for path in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with suppress(OSError):
            found = path.lstat()
            if found.st_uid == os.getuid() and time.time() - found.st_mtime > _NEW:
                with open_folder(path) as folder:
                    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path)
