"""`neuroevo push` and `pull`, with the library of the Hugging Face Hub and a local Hub."""

import os
import shutil
import sqlite3
import subprocess
import sys

import pytest
import yaml

import neuroevo
from neuroevo.analysis.hub import model_card
from neuroevo.config import own_runs
from tests.support.commands import ROOT, wait_for_rows
from tests.support.local_hub import TOKEN, local_hub

LONG = {
    "env": {"name": "InvertedPendulum-v5"},
    "network": {"name": "mlp", "hidden": [4]},
    "algorithm": {"name": "ga", "population": 4, "parents": 2, "validation_candidates": 2},
    "training": {"generations": 10**6, "validation_episodes": 1, "test_episodes": 1},
}

OWN = """
import gymnasium


def layers(shape, outputs):
    return ["dense 3", "tanh", f"dense {outputs}"]


class Still(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, float(action), True, False, {}
"""


@pytest.fixture(scope="module")
def hub(toy_command):
    """A Hub; its `run` runs a command in a fork of a process that has imported the package."""
    with local_hub() as hub:
        hub.run = toy_command
        yield hub


SMOKE = {"training.generations": 1, "training.test_episodes": 2, "training.max_episode_steps": 60}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on Atari."""
    return neuroevo.train("smoke", SMOKE, out=tmp_path_factory.mktemp("hub") / "run")


def command(hub, folder, *arguments, **variables):
    environment = {
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": TOKEN,
        "HF_HOME": str(folder / "hf"),
        "NO_PROXY": "127.0.0.1",
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
    }
    environment |= {"HF_HUB_OFFLINE": "0", "TRANSFORMERS_OFFLINE": "0", **variables}
    return hub.run(*arguments, real=True, folder=folder, variables=environment)


def refused(*arguments, **variables):
    """Return the error message of a command that must fail."""
    done = command(*arguments, **variables)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_run_is_pushed_pulled_and_continued(hub, trained, tmp_path):
    done = command(hub, tmp_path, "push", trained.path, "me/smoke")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"pushed {trained.path} to {hub.address}/me/smoke\n"
    files = dict(hub.repositories["me/smoke"])
    assert {*files} == {"README.md", "config.toml", "elite.mp4", "metrics.csv", "run.db"}
    assert len(files["elite.mp4"]) > 1000 and "me/smoke" not in hub.private

    done = command(hub, tmp_path, "pull", "me/smoke")
    assert done.stdout == "pulled me/smoke to runs/smoke; next: neuroevo evaluate runs/smoke\n", done.stderr
    pulled = neuroevo.open_run(tmp_path / "runs/smoke")
    assert {path.name: path.read_bytes() for path in pulled.path.iterdir()} == files
    assert pulled.rows() == trained.rows() and pulled.elite() == trained.elite()
    assert pulled.evaluate(3).outcomes.returns.tolist() == trained.evaluate(3).outcomes.returns.tolist()

    copied = shutil.copytree(trained.path, tmp_path / "copied")
    both = [
        neuroevo.train("smoke", {**SMOKE, "training.generations": 2}, out=path, resume=True)
        for path in (copied, pulled.path)
    ]
    assert both[0].elite() == both[1].elite() and len(both[1].rows()) == 2

    # A push replaces the files of a run and keeps the other files of the repository.
    hub.repositories["me/smoke"] |= {"elite.html": b"of another run", "LICENSE": b"mine"}
    assert command(hub, tmp_path, "push", pulled.path, "me/smoke").returncode == 0
    assert {*hub.repositories["me/smoke"]} == {*files, "LICENSE"} - {"elite.html"}
    assert hub.repositories["me/smoke"]["run.db"] != files["run.db"]
    assert hub.messages[-2:] == ["Upload generation 0", "Upload generation 1"]


def test_a_card_has_what_the_hub_reads(trained):
    _, data, text = model_card(trained, "me/smoke").split("---\n", 2)
    data, last = yaml.safe_load(data), trained.rows()[-1]
    assert (data["library_name"], data["pipeline_tag"]) == ("neuroevo", "reinforcement-learning")
    (model,) = data["model-index"]
    (result,) = model["results"]
    assert (model["name"], result["dataset"]["name"]) == ("smoke", "frostbite")
    (metric,) = result["metrics"]
    assert metric["type"] == "mean_reward"
    assert metric["value"] == f"{last['test_mean']:.2f} +/- {last['test_standard_error']:.2f}"
    assert "1,008,450 weights" in text and "neuroevo pull me/smoke --out smoke\n" in text


def test_private_runs_of_code_of_ones_own_without_screens(hub, tmp_path, monkeypatch):
    (tmp_path / "still.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    tables = {
        "env": {"name": "gymnasium:still:Still"},
        "network": {"name": "still:layers"},
        "algorithm": {"name": "random_search", "population": 2},
        "training": {"generations": 1, "validation_episodes": 1, "test_episodes": 0},
    }
    run = neuroevo.train(tables, out=tmp_path / "run")
    done = command(hub, tmp_path, "push", run.path, "still", "--private")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no video: ") and "render_mode" in done.stdout
    files = hub.repositories["me/still"]
    assert hub.private == {"me/still"} and files["own/still.py"].decode() == OWN
    assert "not tested" in files["README.md"].decode() and "model-index" not in files["README.md"].decode()
    assert command(hub, tmp_path, "pull", "me/still", "--out", "pulled").returncode == 0
    assert "--trust" in refused(hub, tmp_path, "evaluate", "pulled")
    assert command(hub, tmp_path, "evaluate", "pulled", "--trust", "--episodes", 2).returncode == 0


def test_a_run_that_trains_meanwhile_is_pushed_as_it_is_at_one_moment(hub, tmp_path):
    file = tmp_path / "long.toml"
    file.write_text(neuroevo.make_config(LONG).toml())
    training = subprocess.Popen([sys.executable, "-m", "neuroevo", "train", file, "--out", tmp_path / "run"], cwd=ROOT)
    try:
        wait_for_rows(tmp_path / "run", training, 3)
        done = command(hub, tmp_path, "push", tmp_path / "run", "me/long")
        assert done.returncode == 0 and training.poll() is None, done.stderr
    finally:
        training.kill()
        training.wait()
    assert command(hub, tmp_path, "pull", "me/long").returncode == 0
    pulled = neuroevo.open_run(tmp_path / "runs/long")
    rows = pulled.rows()
    assert hub.messages[-1] == f"Upload generation {len(rows) - 1}"
    assert len((pulled.path / "metrics.csv").read_text().splitlines()) == 1 + len(rows)
    assert f"| generations | {len(rows):,} |" in (pulled.path / "README.md").read_text()


def test_a_pulled_run_is_not_taken_for_a_deleted_one_of_the_user_s(hub, trained, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    target = tmp_path / "run"
    shutil.copytree(trained.path, target)
    own_runs.remember(target / "run.db")
    assert own_runs.is_own(target / "run.db")
    other = shutil.copytree(trained.path, tmp_path / "other") / "run.db"
    own_runs.remember(other)
    shutil.rmtree(target)
    assert command(hub, tmp_path, "push", trained.path, "me/again").returncode == 0
    assert command(hub, tmp_path, "pull", "me/again", "--out", target).returncode == 0
    lines = own_runs.list_path().read_text().splitlines()
    assert [line.partition(" ")[2] for line in lines] == [str(other)]


def test_what_cannot_be_pushed(hub, trained, tmp_path):
    private = "is a public repository, expected a private or a new one"
    hub.repositories["me/public"] = {}
    assert private in refused(hub, tmp_path, "push", trained.path, "me/public", "--private")
    assert hub.repositories["me/public"] == {}
    message = refused(hub, tmp_path, "push", trained.path, "me/other", HF_TOKEN="hf_wrong")
    assert "cannot push to me/other: " in message and "hf auth login" in message
    (tmp_path / "secret").write_text("secret")
    linked = shutil.copytree(trained.path, tmp_path / "linked")
    (linked / "own").mkdir()
    (linked / "own" / "module.py").symlink_to(tmp_path / "secret")
    assert "module.py is a symbolic link" in refused(hub, tmp_path, "push", linked, "me/linked")
    with sqlite3.connect(linked / "run.db") as database:
        database.execute("DELETE FROM generations")
    assert "run.db is damaged: it contains 0 generations" in refused(hub, tmp_path, "push", linked, "me/linked")
    assert "me/linked" not in hub.repositories


def test_what_cannot_be_pulled(hub, tmp_path):
    hub.repositories["me/empty"] = {"README.md": b"nothing"}
    hub.repositories["me/invalid"] = {"run.db": b"nothing"}
    assert "cannot pull me/none: " in refused(hub, tmp_path, "pull", "me/none")
    assert "cannot pull me/a b: " in refused(hub, tmp_path, "pull", "me/a b")
    assert "cannot pull me/empty: " in refused(hub, tmp_path, "pull", "me/empty", "--revision", "older")
    assert "me/empty does not hold a run: expected run.db" in refused(hub, tmp_path, "pull", "me/empty")
    assert "run.db is damaged: file is not a database" in refused(hub, tmp_path, "pull", "me/invalid")
    (tmp_path / "taken").mkdir()
    assert "taken exists" in refused(hub, tmp_path, "pull", "me/empty", "--out", "taken")
    assert "cannot pull me/empty: " in refused(hub, tmp_path, "pull", "me/empty", HF_ENDPOINT="http://127.0.0.1:9")
    assert not any((tmp_path / "runs").iterdir())  # no incomplete downloads


def test_a_pull_takes_the_files_of_a_run_alone(hub, trained, tmp_path):
    assert command(hub, tmp_path, "push", trained.path, "me/more").returncode == 0
    others = {
        "own/module.py",
        "own/package/module.py",
        "own/module.pyc",
        "own/.hidden.py",
        "elite.d/elite.mp4",
        "log.txt",
    }
    hub.repositories["me/more"] |= dict.fromkeys(others, b"")
    assert command(hub, tmp_path, "pull", "me/more").returncode == 0
    files = {
        str(path.relative_to(tmp_path / "runs/more")) for path in (tmp_path / "runs/more").rglob("*") if path.is_file()
    }
    taken = {"own/module.py", "own/package/module.py"}
    assert files == {"README.md", "config.toml", "elite.mp4", "metrics.csv", "run.db"} | taken
