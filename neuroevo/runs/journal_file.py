"""A file to which records are appended, each with a checksum, until it is emptied; what a crash tore off is left out.

The first line is JSON: the format's name and version, and whose records these are. Each record is its length and its
CRC-32 as uint32, little-endian, and its bytes. Nothing is flushed to the disk: records outlive the process, and a power
failure as far as the kernel had written them.
"""

from __future__ import annotations

import json
import os
import struct
import zlib

from neuroevo.system.directory import Directory

FORMAT, VERSION = "neuroevo journal", 1
MOST_BYTES = 1 << 28  # of a file; what comes after that is not kept
_BEGIN = struct.Struct("<II")


class JournalFile:
    """The file, open as long as a run goes on.

    Attributes:
        records: What was in it, up to the first record that is damaged.
        problem: Why some or all of what was there was left out, as the end of a sentence that begins with the path;
            None: it was whole.
    """

    def __init__(self, folder: Directory, name: str, owner: str):
        """Reads what there is and cuts off what cannot be used.

        Args:
            folder: Where it is, which stays open as long as the file.
            name: The file's, which need not exist.
            owner: Whose the records are; others' are left out.

        Raises:
            OSError: It cannot be read or written.
            UserError: It is not a file, but a link for example.
        """
        self._head = json.dumps({"format": FORMAT, "version": VERSION, "owner": owner}).encode() + b"\n"
        self._folder, self._name = folder, name
        self._file = folder.open_file(name, os.O_RDWR | os.O_CREAT)
        try:
            self.records, self.problem, self._size = self._read()
            os.ftruncate(self._file, self._size)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, record: bytes) -> bool:
        """Adds a record; False: there is no room for it.

        Raises:
            OSError: It cannot be written; the file ends as before, or with a part of it.
        """
        data = _BEGIN.pack(len(record), zlib.crc32(record)) + record
        if self._size == 0:
            data = self._head + data
        if self._size + len(data) > MOST_BYTES:
            return False
        written = os.pwrite(self._file, data, self._size)
        if written < len(data):
            os.ftruncate(self._file, self._size)
            raise OSError(f"{written} of {len(data)} bytes were written")
        self._size += written
        return True

    def empty(self) -> None:
        """Removes all records. OSError: it cannot be written."""
        if self._size:
            os.ftruncate(self._file, 0)
        self._size = 0

    def close(self) -> None:
        """Closes it, and deletes it if there are no records in it."""
        os.close(self._file)
        if self._size == 0:
            self._folder.remove(self._name)

    def _read(self) -> tuple[list[bytes], str | None, int]:
        """The records, what is wrong, and the length of what can be used."""
        status = os.fstat(self._file)
        if status.st_size > MOST_BYTES:
            return [], f"has {status.st_size:,} bytes, expected at most {MOST_BYTES:,}", 0
        data = b""
        while len(data) < status.st_size and (more := os.pread(self._file, status.st_size - len(data), len(data))):
            data += more
        if not data:
            return [], None, 0
        if not data.startswith(self._head):
            return [], "is another run's, another configuration's, or damaged in its first line", 0
        records: list[bytes] = []
        at = len(self._head)
        while at < len(data):
            begin = at + _BEGIN.size
            length, checksum = _BEGIN.unpack_from(data, at) if begin <= len(data) else (0, 0)
            record = data[begin : begin + length]
            if not record or len(record) < length or zlib.crc32(record) != checksum:
                return records, f"is damaged after {at:,} of {len(data):,} bytes", at
            records.append(record)
            at = begin + length
        return records, None, at
