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
        OSError: Writing failed; the file is as it was, or complete.
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
    """Delete temporary files that a killed process left. No other process may be writing there.

    They are those of write_atomically(), and databases that were made in the same way, with SQLite's files beside them.

    Args:
        folder: The folder.
        written: A regular expression of the names of the files that were being written.

    Raises:
        OSError: One cannot be deleted.
    """
    temporary = re.compile(rf"\.(?:{written})\.\d+\.tmp(?:-journal|-wal|-shm)?")
    for name in os.listdir(folder):
        if temporary.fullmatch(name):
            (folder / name).unlink(missing_ok=True)


def check_kind(path: Path, expected: int = stat.S_IFREG) -> None:
    """Check that nothing would be written elsewhere than where a path says.

    Args:
        path: The path, which need not exist.
        expected: What it should be: stat.S_IFREG or stat.S_IFDIR.

    Raises:
        UserError: It is a link, or something else than expected.
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
    """Make a folder and the missing ones above it, so that their names survive a power failure.

    Args:
        path: The folder.
        exist_ok: Whether it may exist already.

    Raises:
        FileExistsError: It exists, and may not; or a file does.
        OSError: It cannot be made.
    """
    missing = [each for each in path.parents if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        flush_names(each.parent)
    path.mkdir(exist_ok=exist_ok)
    flush_names(path.parent)  # also if it existed: who made it may have been killed before this


def flush_names(folder: Path) -> None:
    """Flush the names in a folder to the disk, if this user may list them. OSError: that failed."""
    with suppress(PermissionError), open_folder(folder) as opened:
        os.fsync(opened)


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Open a folder for the block, to lock or to flush it; yield its descriptor. OSError: it cannot be opened."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield opened
    finally:
        os.close(opened)


@contextmanager
def written_aside(path: Path, force: bool = False, mark: str | None = None) -> Iterator[Path]:
    """Yield a temporary path to write to, which is renamed to `path` after the block.

    If the block fails or is interrupted, what was at `path` stays as it was and the temporary file is deleted.

    Args:
        path: The file or folder to make.
        force: Whether `path` may exist and is replaced.
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
    """Find what was probably meant by a name that is no file's.

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
