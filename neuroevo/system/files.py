"""Files that are either as they were or complete and on the disk, whatever happens in between."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroevo.core.errors import UserError


def write_atomically(path: Path, data: bytes) -> None:
    """Puts `data` into the file at `path`: written aside, flushed, renamed. OSError leaves `path` as it was."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Makes the names in a folder last through a power failure."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def written_aside(path: Path, force: bool = False, mark: str | None = None) -> Iterator[Path]:
    """Yields a name beside `path`, with its suffix, to write to; after the block it becomes `path`.

    If the block fails or is interrupted, what was there stays and nothing else is left. force: `path` may be there, as
    a file, or as a folder that holds a file named `mark`. UserError, before the block: it is there, or cannot be
    written.
    """
    _check(path, force, mark)
    aside = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield aside
        if mark is not None and path.exists():
            _replace_folder(path, aside)
        else:
            aside.replace(path)
    finally:
        _delete(aside)


def _check(path: Path, force: bool, mark: str | None) -> None:
    if not path.name or not path.parent.is_dir():
        raise UserError(f"cannot write {path}: there is no folder {path.parent}")
    if path.exists():
        if mark is None and path.is_dir():
            raise UserError(f"{path} is a folder, expected a file or nothing")
        if not force:
            raise UserError(f"{path} is there already; --force replaces it, --out gives another name")
        if mark is not None and not (path / mark).is_file():
            raise UserError(f"{path} cannot be replaced: expected a folder with {mark} in it, or nothing")
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _replace_folder(path: Path, aside: Path) -> None:
    """In two steps, since there is no way to replace a folder in one."""
    old = aside.with_name(aside.name + ".old")
    path.rename(old)
    try:
        aside.rename(path)
    except BaseException:
        old.rename(path)
        raise
    _delete(old)


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
