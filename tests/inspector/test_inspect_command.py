"""`neuroevo inspect`: errors and shutdown."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app
from neuroevo.inspector.inspection import Inspection
from tests.inspector.conftest import MAZE, NOVELTY, TRAINING, configured, played


def command(*words):
    return CliRunner().invoke(app, ["inspect", *map(str, words), "--no-browser"])


def refused(*words):
    """Return the error message of a command that must fail."""
    result = command(*words)
    assert result.exit_code == 2, result.output
    return " ".join(result.stderr.split())


def test_what_is_no_run(tmp_path):
    assert f"there is no run in {tmp_path / 'none'}" in refused(tmp_path / "none")
    assert f"there is no run in {tmp_path}" in refused(tmp_path)
    (tmp_path / "file").write_text("x")
    assert f"there is no run in {tmp_path / 'file'}" in refused(tmp_path / "file")


def test_a_port_in_use(maze):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"port {port} is in use" in refused(maze, "--port", port)


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_what_is_no_port(maze, port):
    assert "--port" in refused(maze, "--port", port)


@pytest.mark.parametrize("member", ["12", "1:2:3", "a:1", "-1:0", "1:"])
def test_what_is_no_member(maze, tmp_path, member):
    assert f"--member {member}: expected GENERATION:INDEX" in refused(
        maze, "--export", tmp_path / "x", f"--member={member}"
    )


def test_members_are_for_exports(maze):
    assert "--export" in refused(maze, "--member", "1:2")


def test_a_package_that_is_missing(maze, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert "plotly is not installed: pip install 'neuroevo[inspect]'" in refused(maze)


def test_videos_of_a_page_that_was_killed_are_deleted_by_the_next(maze, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def folders():
        return sorted(tmp_path.glob("neuroevo-inspect-*"))

    def grown_old():
        for folder in folders():
            os.utime(folder, (0, 0))

    words = [sys.executable, "-m", "neuroevo", "inspect", str(maze), "--no-browser"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        process.stdout.readline()
        (folder,) = folders()
        (folder / "0-0-0-0.mp4").write_bytes(b"a video")
        grown_old()
        with Inspection([maze]):
            assert folder in folders()  # its page is still running
        process.kill()
    assert folders() == [folder]
    grown_old()
    with Inspection([maze]):
        assert len(folders()) == 1 and folder not in folders()
    assert folders() == []


def test_it_serves_until_it_is_interrupted(maze):
    words = [sys.executable, "-m", "neuroevo", "inspect", str(maze), "--no-browser"]
    with subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/\S+/", line)[0]
        with urllib.request.urlopen(f"{address}data/overview.json") as answer:
            assert answer.status == 200
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(re.sub(r"/[^/]+/$", "/wrong/", address))
        assert error.value.code == 403
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "neuroevo: interrupted\n")


def test_a_stranger_s_run_is_shown_and_nobody_of_it_plays(maze, tmp_path, monkeypatch):
    from neuroevo.inspector.inspection import Inspection
    from neuroevo.inspector.playing import Member

    changes = ('name = "mlp"', 'name = "their_nets:small"'), ("hidden = [\n    4,\n]\n", "")
    theirs = configured(maze, tmp_path / "theirs", *changes)
    (tmp_path / "their_nets.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\ndef small(shape, outputs): return ['dense 4']\n"
    )
    monkeypatch.chdir(tmp_path)
    with Inspection([theirs]) as inspection:
        (run,) = inspection.answer("overview")["runs"]
        assert run["generations"] == 6 and "their_nets" in run["why_not"] and "--trust" in run["why_not"]
        names = [
            "alone/0",
            "about/0",
            "cloud/0",
            "generation/0/3",
            "way/0",
            "family/0/5/0",
            "ancestors/0/0",
            "curves/fitness_max",
        ]
        assert all(inspection.answer(name) for name in names)
        played = inspection.stage.play(0, Member(0, 0, 0))
        assert played["state"] == "failed" and "--trust" in played["error"]
    assert not (tmp_path / "ran").exists()


def test_of_modules_of_one_name_one_plays(tmp_path, monkeypatch):
    from neuroevo.inspector.inspection import Inspection
    from neuroevo.inspector.playing import Member

    def forget():
        sys.modules.pop("nets_of_this_test", None)
        monkeypatch.setattr(sys, "path", [each for each in sys.path if not each.startswith(str(tmp_path))])

    runs = []
    for name, units in (("one", 3), ("other", 5)):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        source = f'def small(shape, outputs):\n    return ["dense {units}", "tanh", f"dense {{outputs}}"]\n'
        (tmp_path / name / "nets_of_this_test.py").write_text(source)
        forget()
        network = {"name": "nets_of_this_test:small"}
        runs.append(played(tmp_path / name / "run", env=MAZE, network=network, algorithm=NOVELTY, training=TRAINING))
    monkeypatch.chdir(tmp_path)
    forget()
    with Inspection(runs) as inspection:
        first, other = inspection.answer("overview")["runs"]
        assert first["why_not"] == "" and "nets_of_this_test" in other["why_not"]
        assert inspection.stage.play(0, Member(2, 3, 0))["same"] is True
        assert "nets_of_this_test" in inspection.stage.play(1, Member(2, 3, 0))["error"]
