"""What a run asks of git leaves the user's checkout as it was."""

import os
import shutil
import subprocess

import pytest

from neuroevo.runs import provenance


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_looking_at_a_checkout_does_not_lock_it(tmp_path):
    """Git would write its index anew, where only a file's time has changed; killed meanwhile, it leaves index.lock."""
    (tmp_path / "file").write_text("x")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "file"], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    os.utime(tmp_path / "file", (1, 1))
    index = (tmp_path / ".git" / "index").read_bytes()
    assert provenance._git(tmp_path, "status", "--porcelain") == ""
    assert (tmp_path / ".git" / "index").read_bytes() == index
