"""Provenance of a run, and that querying git does not change the user's checkout."""

import os
import shutil
import subprocess

import pytest

from neuroevo.sessions import provenance


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_looking_at_a_checkout_does_not_lock_it(tmp_path):
    """Git would rewrite its index if only a file's time has changed, and leave index.lock if killed meanwhile."""
    (tmp_path / "file").write_text("x")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "file"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    os.utime(tmp_path / "file", (1, 1))
    index = (tmp_path / ".git" / "index").read_bytes()
    assert provenance._git(tmp_path, "status", "--porcelain") == ""
    assert (tmp_path / ".git" / "index").read_bytes() == index


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023", "535.104.05"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159  Release Build", "580.159"),
        ("", None),
    ],
)
def test_the_nvidia_driver_s_version(words, version, tmp_path, monkeypatch):
    (tmp_path / "version").write_text(f"{words}\nGCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n")
    monkeypatch.setattr(provenance, "_NVIDIA", tmp_path)
    assert provenance.machine()["nvidia_driver"] == version
