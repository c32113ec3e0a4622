"""Ways in which a checkpoint's file can be wrong, and the words of the message about each."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neuroevo.runs.checkpoint import VERSION
from tests.support.runs import checkpoint_after, new_run


def truncate(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def flip_a_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-40] ^= 1
    file.write_bytes(data)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def raise_the_version(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b'"version": %d' % VERSION, b'"version": %d' % (VERSION + 1), 1))


def take_another_runs(file: Path) -> None:
    other = file.parents[2] / "other"
    new_run(other, training={"seed": 77})
    shutil.copy(other / "checkpoints" / file.name, file)


def take_an_earlier_one(file: Path) -> None:
    shutil.copy(checkpoint_after(file.parents[1], 1), file)


def put_a_folder_there(file: Path) -> None:
    file.unlink()
    file.mkdir()


@dataclass(frozen=True)
class Damage:
    """to: does it to a checkpoint's file. message: a regular expression for the message about the file then."""

    to: Callable[[Path], None]
    message: str


DAMAGES = {
    "truncated": Damage(truncate, "is (damaged|not a neuroevo checkpoint)"),
    "bit-flipped": Damage(flip_a_bit, "SHA-256"),
    "empty": Damage(empty, "not a neuroevo checkpoint"),
    "newer version": Damage(raise_the_version, f"version {VERSION + 1}"),
    "foreign": Damage(take_another_runs, "training.seed is 77"),
    "misnamed": Damage(take_an_earlier_one, "of generation 1"),
    "a folder": Damage(put_a_folder_there, "Is a directory"),
}
