"""`neuroevo inspect --export`: files with the same data as the server's."""

import json
import re

import pytest
from typer.testing import CliRunner

from neuroevo.cli import app
from tests.analysis.test_video import decode


def command(*words):
    return CliRunner().invoke(app, ["inspect", *map(str, words)])


def exported(folder, name):
    """Return the data in an exported file, and check its name."""
    text = (folder / "data" / f"{name}.js").read_text()
    given, value = re.fullmatch(r"inspector\.put\((\"[^\"]*\"),(.*)\);\n", text, re.DOTALL).groups()
    assert json.loads(given) == name
    return json.loads(value)


def test_an_export_has_what_the_page_asks_for(maze, es, maze_page, tmp_path):
    out = tmp_path / "page"
    result = command(maze, es, "--export", out, "--member", "5:3", "--member", "0:1")
    assert result.exit_code == 0, result.stderr
    assert f"wrote {out / 'index.html'} and 2 videos" in result.stdout
    for name in (
        "alone/0",
        "cloud/0",
        "generation/0/0",
        "generation/0/5",
        "way/0",
        "archive/0",
        "cells/0",
        "family/0/5/3",
        "ancestors/0/0",
    ):
        assert exported(out, name) == maze_page.answer(name)
    overview = exported(out, "overview")
    assert [run["name"] for run in overview["runs"]] == ["maze", "es"]
    assert overview["exported"]["played"] == {"0": [[5, 3], [0, 1]], "1": []}
    for generation, index in ((5, 3), (0, 1)):
        played = exported(out, f"play/0/{generation}/{index}/0")
        assert played["same"] is True
        assert len(decode(out / "videos" / played["file"])) == played["steps"] + 1
    page = (out / "index.html").read_text()
    assert "data-exported" in page
    assert all((out / name).is_file() for name in re.findall(r'src="([^"]+)"', page))


def test_who_is_not_there_cannot_be_exported(maze, tmp_path):
    result = command(maze, "--export", tmp_path / "page", "--member", "0:30")
    assert result.exit_code == 2 and "--member 0:30: member 30 of generation 0 is out of range [0, 30)" in result.stderr


@pytest.mark.parametrize("there", ["folder", "file"])
def test_nothing_is_written_over(maze, tmp_path, there):
    out = tmp_path / "page"
    kept = out if there == "file" else out / "mine"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine")
    result = command(maze, "--export", out)
    assert result.exit_code == 2 and f"--export {out}: already exists" in result.stderr
    assert kept.read_text() == "mine" and list(tmp_path.rglob("*")) == sorted({out, kept})
