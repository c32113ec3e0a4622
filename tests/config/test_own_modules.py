"""The source of a user's modules is copied to the run, and shown in tracebacks."""

import hashlib
import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.databases import count_rows, info_of

SOURCE = """
    import numpy as np
    from neuroevo.algorithms.ask_tell import AskTell, Sampler
    from neuroevo.core.settings import settings

    class Climber(Sampler):
        def __init__(self, at, rng):
            self.at, self.rng = at, rng

        def ask(self):
            self.asked = self.at + 0.3 * self.rng.normal(size=(4, len(self.at)))
            return self.asked

        def tell(self, fitness, behaviors):
            self.at = self.asked[np.argmax(fitness)]

    @settings
    class Climbing(AskTell):
        fails: bool = False

        def start(self, theta, seed):
            if self.fails:
                return np.zeros(3)[7]
            return Climber(theta, np.random.default_rng(seed))

    def small(shape, outputs):
        return ["dense 5", "relu", f"dense {outputs}"]
"""
RUN = """
    [env]
    name = "HardMaze-v0"
    [network]
    name = "of_mine.here:small"
    [algorithm]
    name = "of_mine.here:Climbing"
    [training]
    generations = 2
    max_episode_steps = 20
    test_episodes = 2
"""


def neuroevo(folder, *words):
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "neuroevo", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path):
    """Folder with a run and the package of two modules that it references."""
    folder = tmp_path / "project"
    (folder / "of_mine").mkdir(parents=True)
    (folder / "of_mine" / "here.py").write_text(textwrap.dedent(SOURCE))
    (folder / "run.toml").write_text(textwrap.dedent(RUN))
    done = neuroevo(folder, "train", "run.toml", "--out", "run")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_run_is_looked_at_and_resumed_from_any_folder(project, tmp_path):
    source = (project / "of_mine" / "here.py").read_bytes()
    kept = project / "run" / "own" / "of_mine" / "here.py"
    assert kept.read_bytes() == source
    own = info_of(project / "run")["own_modules"]
    assert own == {"of_mine.here": {"sha256": hashlib.sha256(source).hexdigest(),
                                    "path": str(project / "of_mine" / "here.py")}}  # fmt: skip
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = str(project / "run")
    done = neuroevo(elsewhere, "evaluate", run, "--episodes", "2", "--max-episode-steps", "20")
    assert done.returncode == 0, done.stderr
    done = neuroevo(elsewhere, "train", "--resume", run, "--set", "training.generations=3")
    assert done.returncode == 0, done.stderr
    assert "has changed" not in done.stderr
    assert count_rows(project / "run") == 3


def test_a_module_that_has_changed_is_told_when_the_run_is_resumed(project):
    with (project / "of_mine" / "here.py").open("a") as file:
        file.write("# another line\n")
    done = neuroevo(project, "train", "--resume", "run", "--set", "training.generations=3")
    assert done.returncode == 0, done.stderr
    changed = project / "of_mine" / "here.py"
    assert f"neuroevo: {changed} has changed since the run began, which may change its results; run/own/" in done.stderr


def test_the_user_s_own_traceback_needs_no_debug(project):
    done = neuroevo(project, "train", "run.toml", "--out", "other", "--set", "algorithm.fails=true")
    assert done.returncode == 1
    line = textwrap.dedent(SOURCE).splitlines().index("            return np.zeros(3)[7]") + 1
    place = f'Traceback of your own code:\n  File "{project}/of_mine/here.py", line {line}, in start\n'
    assert place in done.stderr and "return np.zeros(3)[7]" in done.stderr
    assert done.stderr.count("File ") == 1
    assert "neuroevo: failed: IndexError: index 7 is out of bounds for axis 0 with size 3" in done.stderr
    mistake = neuroevo(project, "train", "run.toml", "--out", "other", "--set", "algorithm.fals=true")
    assert mistake.returncode == 2 and "Traceback" not in mistake.stderr
    (project / "of_mine" / "here.py").write_text("import numpy\nnumpy.zeros(3)[7]\n")
    broken = neuroevo(project, "train", "run.toml", "--out", "other")
    assert broken.returncode == 2
    assert (
        f"raises IndexError: index 7 is out of bounds for axis 0 with size 3 ({project}/of_mine/here.py, line 2)"
        in (broken.stderr)
    )
