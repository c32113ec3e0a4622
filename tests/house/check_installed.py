"""Check of an installed neuroevo: check_installed.py [tensorflow], run by a Python with neuroevo installed by pip.

`make test-install` does so, in an environment of its own and away from the repository. Every family of environments is
played, and the commands that the README begins with are given. It is a portable build, whose code for each level that
this machine's processor runs plays the same. With `tensorflow`, that extra is installed, and its ops play the same.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import neuroevo
from neuroevo.core.errors import UserError
from neuroevo.native import cpu, library

MLP = {"name": "mlp", "hidden": [8]}
GA = {"name": "ga", "population": 6, "parents": 2, "validation_candidates": 2}
TRAINING = {"generations": 2, "max_episode_steps": 20, "validation_episodes": 2, "test_episodes": 0}
WITH_TENSORFLOW = sys.argv[1:] == ["tensorflow"]
PLAYED = (
    ("frostbite", {"name": "model"}),
    ("Hopper-v5", MLP),
    ("hard_maze", MLP),
    ("gymnasium:CartPole-v1", MLP),
)


def command(*words: str, **environment: str) -> str:
    """Run a neuroevo command with the program installed next to this Python, and return its output."""
    program = Path(sys.executable).with_name("neuroevo")
    variables = {**os.environ, **environment}
    return subprocess.run([program, *words], check=True, text=True, stdout=subprocess.PIPE, env=variables).stdout


def main() -> None:
    package = Path(neuroevo.__file__).parent
    assert package.is_relative_to(sys.prefix), f"{package} is not in {sys.prefix}: this neuroevo was not installed"
    built = library.build_info()
    engines = ("native", "tensorflow") if WITH_TENSORFLOW else ("native",)
    assert set(built["families"].split()) == {"atari", "mujoco", "hard_maze", "gymnasium"}, built
    for name, network in PLAYED:
        fitness = []
        for engine in engines:
            tables = {"env": {"name": name}, "network": network, "algorithm": GA, "training": TRAINING}
            out = f"{engine}-{name.replace(':', '-')}"
            run = neuroevo.train(tables, {"hardware.engine": engine}, out=out)
            fitness.append([row["fitness"] for row in run.rows()])
        assert len(fitness[0]) == 2 and fitness[0] == fitness[-1], (name, fitness)
        print(f"{name}: played by {' and '.join(engines)}")
    if WITH_TENSORFLOW:
        return
    try:
        neuroevo.train("smoke", {"hardware.engine": "tensorflow"}, out="refused")
    except UserError as error:
        assert str(error) == "tensorflow is not installed: pip install 'neuroevo[tensorflow]'", error
    else:
        raise AssertionError("TensorFlow's engine played, expected an error")
    assert "frostbite_ga" in command("config", "presets")
    assert {"index.html", "style.css", "main.js"} <= {path.name for path in (package / "inspector/page").iterdir()}
    command("train", "smoke", "--out", "smoke")
    fitness = [row["fitness"] for row in neuroevo.open_run("smoke").rows()]
    assert built["arch"] == cpu.PORTABLE, built
    levels = cpu.runnable(cpu.processor_flags())
    for level in levels:
        command("train", "smoke", "--out", f"smoke-{level}", NEUROEVO_CPU=level)
        assert fitness == [row["fitness"] for row in neuroevo.open_run(f"smoke-{level}").rows()], level
    print(f"{', '.join(levels)}: played alike")
    command("evaluate", "smoke", "--episodes", "2", "--max-episode-steps", "50")
    command("render", "smoke", "--out", "elite.mp4", "--max-episode-steps", "20")
    assert Path("elite.mp4").stat().st_size > 1000
    print(f"neuroevo {neuroevo.__version__} in {package} is whole: {built}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
