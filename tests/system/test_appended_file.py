"""Files that one process appends to, on disks that fail."""

import errno
import os

import pytest

from neuroevo.system.appended_file import AppendedFile
from neuroevo.system.directory import Directory


@pytest.fixture
def folder(tmp_path):
    with Directory(tmp_path) as folder:
        yield folder


def test_after_a_failed_flush_the_file_is_written_again(folder, monkeypatch):
    """A second fsync of the same file would succeed, and what it did not write would be lost."""
    file, flushed = AppendedFile(folder, "rows"), []

    def fsync(descriptor):
        flushed.append(os.fstat(descriptor).st_ino)
        if len(flushed) == 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    file.append(b"one\n")
    first = file.path.stat().st_ino
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output error"):
        file.flush()
    file.append(b"two\n")
    file.flush()
    second = file.path.stat().st_ino
    assert second != first and flushed[:2] == [first, second]
    file.append(b"three\n")
    file.flush()
    assert file.path.stat().st_ino == second == flushed[-1]
    assert file.path.read_bytes() == b"one\ntwo\nthree\n" and os.listdir(folder.path) == ["rows"]
    file.close()


def test_a_disk_that_goes_on_failing_is_told_each_time(folder, monkeypatch):
    def fsync(descriptor):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    file = AppendedFile(folder, "rows")
    file.append(b"one\n")
    monkeypatch.setattr(os, "fsync", fsync)
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output error"):
            file.flush()
    assert file.path.read_bytes() == b"one\n" and os.listdir(folder.path) == ["rows"]
    file.close()
