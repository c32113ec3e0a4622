"""Write files so that after a crash or a power failure each is unchanged or complete, and never through a link."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from neuroevo.core.errors import UserError

_KINDS = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file", stat.S_IFIFO: "a pipe"}


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the contents of a file: write a temporary file, flush it to the disk, and rename it.

    Args:
        path: The file, which need not exist. If it is a link, the link is replaced.
        data: Its new contents.

    Raises:
        OSError: Writing failed; the file is unchanged or complete.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    aside.unlink(missing_ok=True)
    try:
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    flush_names(path.parent)


def sweep(folder: Path, written: str) -> None:
    """Delete temporary files that a killed process left in a folder. No other process may be writing to the folder.

    These are files of write_atomically(), and databases created in the same way, with SQLite's additional files.

    Args:
        folder: The folder.
        written: Regular expression that matches the names of the files that were being written.

    Raises:
        OSError: A file cannot be deleted.
    """
    temporary = re.compile(rf"\.(?:{written})\.\d+\.tmp(?:-journal|-wal|-shm)?")
    for name in os.listdir(folder):
        if temporary.fullmatch(name):
            (folder / name).unlink(missing_ok=True)


def check_kind(path: Path, expected: int = stat.S_IFREG) -> None:
    """Check the type of a path that will be written, so that writing does not follow a link.

    Args:
        path: The path, which need not exist.
        expected: Expected file type, stat.S_IFREG or stat.S_IFDIR.

    Raises:
        UserError: The path is a link, or has another file type.
    """
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if kind != expected:
        to = f" to {os.readlink(path)}" if kind == stat.S_IFLNK else ""
        what = _KINDS.get(kind, "a device")
        raise UserError(f"{path} is {what}{to}, expected {_KINDS[expected]} or nothing: nothing is written there")


def make_folder(path: Path, exist_ok: bool = True) -> None:
    """Create a folder and its missing parents, so that their names survive a power failure.

    Args:
        path: The folder.
        exist_ok: Whether the folder may exist already.

    Raises:
        FileExistsError: The path is a file, or the folder exists without exist_ok.
        OSError: The folder cannot be created.
    """
    missing = [each for each in path.parents if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        flush_names(each.parent)
    path.mkdir(exist_ok=exist_ok)
    flush_names(path.parent)  # even if the folder existed: its creator may have been killed before flushing


def flush_names(folder: Path) -> None:
    """Flush a folder's entries to the disk, if this user may list them. OSError: flushing failed."""
    with suppress(PermissionError), open_folder(folder) as opened:
        os.fsync(opened)


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Open a folder for the block and yield its descriptor, for locking or flushing. OSError: it cannot be opened."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def written_aside(path: Path, force: bool = False, mark: str | None = None) -> Iterator[Path]:
    """Yield a temporary path to write to, which is renamed to `path` after the block.

    If the block fails or is interrupted, `path` is left unchanged and the temporary file is deleted.

    Args:
        path: The file or folder to create.
        force: Whether to replace an existing `path`.
        mark: For folders: the name of a file that an existing folder must contain to be replaced. None: `path` is a
            file.

    Yields:
        A path in the same folder with the same suffix.

    Raises:
        UserError: Before the block: `path` exists and may not be replaced, or cannot be written. After it: a folder
            exists by now and may not be replaced.
    """
    _check(path, force, mark)
    aside = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield aside
        if mark is not None and path.exists():
            if not force:
                raise UserError(f"{path} was created meanwhile, expected another name")
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
            raise UserError(f"{path} exists already; pass --force to replace it, or --out for another name")
        if mark is not None and not (path / mark).is_file():
            raise UserError(f"{path} cannot be replaced: expected a folder with {mark} in it, or nothing")
    probe = path.with_name(f".{path.name}.{os.getpid()}.probe")
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _replace_folder(path: Path, aside: Path) -> None:
    """Replace a folder in two steps, since no single rename can replace a folder that is not empty."""
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
    """Suggest an existing file for a path that does not exist.

    Args:
        path: The path.
        endings: Allowed endings of file names; "" allows any file or folder.

    Returns:
        '; did you mean PATH?' with the most similar name in the same folder, or '' without a similar name.
    """
    try:
        names = sorted(each.name for each in path.parent.iterdir() if each.name.endswith(tuple(endings)))
    except OSError:  # the folder does not exist, or is not readable
        return ""
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""
