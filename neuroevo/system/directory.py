"""A folder that is held open: what is written below it stays below it, and survives a power failure once it is said to.

Every name is looked up below the folder's descriptor, without following symbolic links. So a folder from somebody else
cannot have files elsewhere overwritten, whatever changes meanwhile. The path of the folder itself may lead over links.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from neuroevo.core.errors import DiskError, UserError

_PLAIN = os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file", stat.S_IFIFO: "a pipe"}


class Directory:
    """An open folder; use it as a context manager, or close() it.

    Attributes:
        path: The folder's path, for messages and for what only reads.
        descriptor: Its file descriptor.
    """

    def __init__(self, path: Path, descriptor: int | None = None):
        """Opens a folder.

        Args:
            path: Where it is; links are followed.
            descriptor: Of the folder, if it is open already.

        Raises:
            OSError: It cannot be opened.
        """
        self.path = path
        if descriptor is None:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.descriptor = descriptor

    def below(self, name: str, make: bool = False) -> Directory:
        """Opens a folder in this one.

        Args:
            name: The folder's.
            make: Whether to make it if it is missing.

        Raises:
            OSError: It is missing or cannot be opened.
            UserError: It is a link, or no folder.
        """
        if make:
            try:
                os.mkdir(name, dir_fd=self.descriptor)
            except FileExistsError:
                pass
            else:
                self.flush()
        self.check(name, stat.S_IFDIR)
        found = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _PLAIN, dir_fd=self.descriptor)
        return Directory(self.path / name, found)

    def open_file(self, name: str, flags: int) -> int:
        """Opens a file in this folder.

        Args:
            name: The file's.
            flags: Of os.open.

        Returns:
            A file descriptor.

        Raises:
            OSError: It cannot be opened.
            UserError: It is a link, or no regular file.
        """
        self.check(name)
        # Not to wait for the other end of a pipe that took the file's place just now.
        file = os.open(name, flags | _PLAIN | os.O_NONBLOCK, 0o666, dir_fd=self.descriptor)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise UserError(f"{self.path / name} is no regular file, expected one or nothing")
        except BaseException:
            os.close(file)
            raise
        return file

    def check(self, name: str, expected: int = stat.S_IFREG) -> None:
        """Checks what a name in this folder is.

        Args:
            name: The name, which need not be there.
            expected: What it should be: stat.S_IFREG or stat.S_IFDIR.

        Raises:
            UserError: It is a link, or something else than expected.
        """
        found = self.status(name)
        kind = expected if found is None else stat.S_IFMT(found.st_mode)
        if kind != expected:
            path, what = self.path / name, _KINDS.get(kind, "a device")
            to = f" to {os.readlink(name, dir_fd=self.descriptor)}" if kind == stat.S_IFLNK else ""
            raise UserError(f"{path} is {what}{to}, expected {_KINDS[expected]} or nothing: nothing is written there")

    def status(self, name: str) -> os.stat_result | None:
        """What os.stat says of a name, a link being a link; None if there is none.

        Args:
            name: The name.
        """
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        """Replaces a file's contents atomically: writes another file, flushes it to the disk, and renames it.

        Args:
            name: The file's, which need not be there. If it is a link, the link is replaced.
            data: Its new contents.

        Raises:
            OSError: Writing failed; the file is as it was, or complete.
        """
        aside = f".{name}.{os.getpid()}.tmp"
        self.remove(aside)
        try:
            file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666, dir_fd=self.descriptor)
            try:
                write_all(file, data)
                os.fsync(file)
            finally:
                os.close(file)
            self.rename(aside, name)
        except BaseException:
            with suppress(OSError):
                self.remove(aside)
            raise
        self.flush()

    def write_below(self, file: Path, data: bytes) -> None:
        """As write(), of a file in a folder below this one, which is made if it is missing.

        Args:
            file: Its path from here.
            data: Its new contents.

        Raises:
            OSError: Writing failed.
            UserError: A folder on the way is a link.
        """
        if len(file.parts) == 1:
            return self.write(file.name, data)
        with self.below(file.parts[0], make=True) as inner:
            return inner.write_below(Path(*file.parts[1:]), data)

    def remove(self, name: str) -> None:
        """Deletes a file, or a link, if it is there.

        Args:
            name: The file's.

        Raises:
            OSError: It cannot be deleted.
        """
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def rename(self, name: str, new: str) -> None:
        """Gives a file another name in this folder.

        Args:
            name: The file's.
            new: Its new name; a file that has it is replaced.

        Raises:
            OSError: It cannot be renamed.
        """
        os.replace(name, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def sweep(self, written: str) -> None:
        """Deletes temporary files of `write` that a killed process left. Nobody else may be writing here.

        Args:
            written: A regular expression of the files' names that were being written.

        Raises:
            OSError: One cannot be deleted.
        """
        ours = re.compile(rf"\.(?:{written})\.\d+\.tmp")
        for name in os.listdir(self.descriptor):
            if ours.fullmatch(name):
                self.remove(name)

    def check_path(self) -> None:
        """Checks that the folder is still where it was opened.

        Raises:
            DiskError: It was deleted, renamed, or replaced.
            OSError: That cannot be known.
        """
        here = os.fstat(self.descriptor)
        try:
            there = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            there = None
        if there is None or not os.path.samestat(here, there):
            what = "deleted or renamed" if there is None else "replaced by another one"
            raise DiskError(f"the folder {self.path} was {what} meanwhile")

    def flush(self) -> None:
        """Has the names in this folder survive a power failure.

        Raises:
            OSError: They cannot be written to the disk.
        """
        os.fsync(self.descriptor)

    def close(self) -> None:
        """Closes the folder, unless it is closed."""
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_all(file: int, data: bytes) -> None:
    """Writes all of some data, where os.write may write a part of it.

    Args:
        file: A file descriptor.
        data: What to write.

    Raises:
        OSError: It cannot be written; a part of it may be.
    """
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def make_folder(path: Path, exist_ok: bool = True) -> None:
    """Makes a folder and the missing ones above it, so that their names survive a power failure.

    Args:
        path: The folder.
        exist_ok: Whether it may be there already.

    Raises:
        FileExistsError: It is there, and may not be; or a file is.
        OSError: It cannot be made.
    """
    missing = [each for each in path.parents if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        _flush_above(each)
    path.mkdir(exist_ok=exist_ok)
    _flush_above(path)  # also if it was there: who made it may have been killed before this


def _flush_above(path: Path) -> None:
    with suppress(PermissionError):  # of a folder in which this user may look up names, but not list them
        above = Directory(path.parent)
        with above:
            above.flush()
