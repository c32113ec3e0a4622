"""Access control and responses of the page's server."""

import shutil

import pytest
from starlette.testclient import TestClient

from neuroevo.inspector.inspection import Inspection
from neuroevo.inspector.playing import Member
from neuroevo.inspector.server import make_app

PORT, TOKEN = 8123, "the-token"


@pytest.fixture
def client(maze_page):
    return TestClient(make_app(maze_page, TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}")


@pytest.mark.parametrize(
    "path", ["/", "/data/overview.json", "/wrong/", "/wrong/data/overview.json", "/the-toke/", "/the-tokens/"]
)
def test_without_the_token_nothing_is_told(client, path):
    answer = client.get(path)
    assert answer.status_code == 403 and "token" in answer.text and "maze" not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", "", f"[::1]:{PORT}"]
)
def test_by_another_name_nothing_is_told(client, host):
    answer = client.get(f"/{TOKEN}/data/overview.json", headers={"host": host})
    assert answer.status_code == 403 and "address" in answer.text


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}"])
def test_with_both_it_answers(client, host):
    answer = client.get(f"/{TOKEN}/data/overview.json", headers={"host": host})
    assert answer.status_code == 200 and answer.json()["runs"][0]["generations"] == 6


def test_the_page_and_its_files(client):
    page = client.get(f"/{TOKEN}/")
    assert page.headers["content-type"].startswith("text/html")
    for line in page.text.splitlines():
        if "src=" in line or "stylesheet" in line:
            name = line.split('src="' if "src=" in line else 'href="')[1].split('"')[0]
            assert client.get(f"/{TOKEN}/{name}").status_code == 200, name
    assert "http" not in page.text


def test_no_answer_may_be_used_by_others(client):
    for path in (f"/{TOKEN}/", f"/{TOKEN}/data/overview.json", "/"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"  # otherwise links would leak the token
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "none.js",
        "..%2f..%2fserver.py",
        "data/none.json",
        "data/about/1.json",
        "videos/0-0-0-0.mp4",
        "videos/..%2fx",
    ],
)
def test_there_is_nothing_else(client, path):
    assert client.get(f"/{TOKEN}/{path}").status_code == 404


def test_nothing_can_be_changed(client):
    for method in (client.post, client.put, client.delete):
        assert method(f"/{TOKEN}/data/overview.json").status_code == 405


def test_mistakes_are_answers(client):
    assert "[0, 6)" in client.get(f"/{TOKEN}/data/generation/0/6.json").json()["error"]


def test_videos_can_be_asked_for_in_parts(client, maze_page):
    played = maze_page.stage.play(0, Member(0, 1, 0))
    whole = client.get(f"/{TOKEN}/videos/{played['file']}")
    assert whole.headers["content-type"] == "video/mp4" and whole.content[4:8] == b"ftyp"
    part = client.get(f"/{TOKEN}/videos/{played['file']}", headers={"range": "bytes=10-19"})
    assert part.status_code == 206 and part.content == whole.content[10:20]


def test_a_run_that_is_deleted_meanwhile(maze, tmp_path):
    run = shutil.copytree(maze, tmp_path / "run")
    with Inspection([run]) as inspection:
        client = TestClient(make_app(inspection, TOKEN, PORT), base_url=f"http://127.0.0.1:{PORT}")
        assert client.get(f"/{TOKEN}/data/overview.json").json()["runs"][0]["problem"] == ""
        shutil.rmtree(run)
        overview = client.get(f"/{TOKEN}/data/overview.json")
        assert overview.status_code == 200 and "is gone" in overview.json()["runs"][0]["problem"]
        for name in ("about/0", "generation/0/0", "play/0/0/0/0", "way/0", "cloud/0"):
            assert client.get(f"/{TOKEN}/data/{name}.json").status_code == 200
