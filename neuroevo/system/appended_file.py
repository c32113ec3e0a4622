"""A file that grows by what one process appends to it, and that says so when somebody else has changed it meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

from neuroevo.core.errors import DiskError
from neuroevo.system.directory import Directory, write_all

_BLOCK = 1 << 20  # bytes


class LostFile(DiskError):
    """A file was deleted, replaced, cut or continued by somebody else while this process was writing it."""


class AppendedFile:
    """A file that is held open; nobody else may write it.

    Attributes:
        name: The file's in its folder.
        size: Bytes of it so far.
    """

    def __init__(self, directory: Directory, name: str, keep: int | None = None):
        """Opens the file or makes it.

        Args:
            directory: Its folder, which stays open as long as this file.
            name: The file's.
            keep: Bytes at its beginning that stay; None: all.

        Raises:
            LostFile: It has fewer bytes than are to be kept.
            OSError: It cannot be opened or cut.
            UserError: It is a link, or no regular file.
        """
        self.name = name
        self._directory = directory
        self._broken = False
        self._file = directory.open_file(name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            found = os.fstat(self._file)
            self.size = found.st_size if keep is None else keep
            if found.st_size < self.size:
                raise LostFile(f"{self.path} has {found.st_size:,} bytes, expected at least {self.size:,}")
            if found.st_nlink > 1:  # what has the other names, such as a backup, stays as it is
                self._copy_to(name)
            elif found.st_size > self.size:
                os.ftruncate(self._file, self.size)
        except BaseException:
            os.close(self._file)
            raise

    @property
    def path(self) -> Path:
        """Where it is."""
        return self._directory.path / self.name

    def intact(self) -> bool:
        """Whether the file still has its name and its size."""
        found = self._directory.status(self.name)
        here = os.fstat(self._file)
        return found is not None and os.path.samestat(found, here) and here.st_size == self.size

    def check(self) -> None:
        """Checks that nobody else has changed the file, and writes it again if it has lost its name.

        Raises:
            LostFile: Somebody has; the message says what is lost and what was kept.
        """
        if self.intact():
            return
        here, found = os.fstat(self._file), self._directory.status(self.name)
        if found is not None and os.path.samestat(found, here):
            raise LostFile(
                f"{self.path} has {here.st_size:,} bytes, expected the {self.size:,} that were written: "
                "something else changed it meanwhile"
            )
        lost = f"{self.path} was {'deleted' if found is None else 'replaced by another file'} meanwhile"
        try:
            self._save_content()
        except OSError as error:
            kept = f"its {here.st_size:,} bytes are lost, since writing them again failed: {error.strerror}"
        else:
            kept = f"its {here.st_size:,} bytes, which were still open, were written to {self.path}"
        raise LostFile(f"{lost}; {kept}")

    def append(self, data: bytes) -> None:
        """Adds data at the end.

        Args:
            data: What to add.

        Raises:
            LostFile: Somebody else has changed the file; nothing was added.
            OSError: It cannot be written.
        """
        self.check()
        try:
            write_all(self._file, data)
        except BaseException:
            os.ftruncate(self._file, self.size)  # no half of it stays, so that what is there can be gone on from
            raise
        self.size += len(data)

    def cut(self, size: int) -> None:
        """Takes back what was added last.

        Args:
            size: Bytes that stay.

        Raises:
            OSError: It cannot be done.
        """
        os.ftruncate(self._file, size)
        self.size = size

    def flush(self) -> None:
        """Has what was appended survive a power failure.

        Where that has failed before, the file is written again: an operating system may forget what it failed to write,
        and then says of the same file that all is well.

        Raises:
            LostFile: Somebody else has changed the file.
            OSError: It cannot be written to the disk.
        """
        self.check()
        if self._broken:
            self._copy_to(self.name)
            self._broken = False
            return
        try:
            os.fsync(self._file)
        except OSError:
            self._broken = True
            raise

    def close(self) -> None:
        """Closes the file, unless it is closed."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)

    def _save_content(self) -> None:
        """Goes on in a copy of what is open, which gets the file's name if that is free, or a similar one."""
        name, number = self.name, 0
        while self._directory.status(name) is not None:
            number += 1
            name = f"{self.name}.kept-{number}"
        self._copy_to(name)

    def _copy_to(self, name: str) -> None:
        """Goes on in a copy of the file's bytes, which gets this name."""
        aside = f".{name}.{os.getpid()}.tmp"
        self._directory.remove(aside)
        copy = self._directory.open_file(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        try:
            at = 0
            while block := os.pread(self._file, min(_BLOCK, self.size - at), at):
                write_all(copy, block)
                at += len(block)
            os.fsync(copy)
            self._directory.rename(aside, name)
            self._directory.flush()
        except BaseException:
            os.close(copy)
            self._directory.remove(aside)
            raise
        os.close(self._file)
        self._file, self.name = copy, name
