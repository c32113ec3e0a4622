"""Writes files atomically: after a crash or a power failure, a file is either unchanged or complete."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from neuroevo.core.errors import UserError
from neuroevo.system.directory import Directory


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces the contents of a file: writes a temporary file, flushes it to the disk, and renames it.

    Args:
        path: The file, which need not exist.
        data: Its new contents.

    Raises:
        OSError: Writing failed; the file is as it was, or complete.
    """
    with Directory(path.parent) as folder:
        folder.write(path.name, data)


@contextmanager
def written_aside(path: Path, force: bool = False, mark: str | None = None) -> Iterator[Path]:
    """Yields a temporary path to write to, which is renamed to `path` after the block.

    If the block fails or is interrupted, what was at `path` stays as it was and the temporary file is deleted.

    Args:
        path: The file or folder to make.
        force: Whether `path` may exist and is replaced.
        mark: For folders: the name of a file that an existing folder must contain to be replaced. None: `path` is a
            file.

    Yields:
        A path in the same folder with the same suffix.

    Raises:
        UserError: Before the block: `path` exists and may not be replaced, or cannot be written.
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
    """Replaces a folder in two steps, since no single rename can replace a folder that is not empty."""
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


def nearest_file(path: Path, endings: Sequence[str] = ("",)) -> str:
    """Finds what was probably meant by a name that is no file's.

    Args:
        path: The name.
        endings: How files' names may end; "" for any, folders too.

    Returns:
        '; did you mean PATH?' for what has the most similar name in the same folder, or ''.
    """
    try:
        names = sorted(each.name for each in path.parent.iterdir() if each.name.endswith(tuple(endings)))
    except OSError:  # no such folder, or nobody may read it
        return ""
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""
