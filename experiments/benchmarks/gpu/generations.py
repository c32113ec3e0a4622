"""Generations of the papers' genetic algorithm with its networks on the GPU and on the cores, by `neuroevo train`.

    python3 experiments/benchmarks/gpu/generations.py FOLDER [--json FILE] [--population N] [--steps N]

Prints and writes the rate of the last generation, and whether both devices gave identical results. The runs are
written to FOLDER. TensorFlow is not required.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_TIMES = ("seconds", "steps_per_s", "idle_share")  # prefixes of columns that differ between machines


def train(device: str, dtype: str, population: int, steps: int, folder: Path) -> list[dict[str, str]]:
    """Play two generations; the first is a warm-up.

    Returns:
        The rows of metrics.csv.
    """
    settings = {
        "network.dtype": dtype,
        "algorithm.population": population,
        "training.max_episode_steps": steps,
        "training.validation_episodes": 3,
        "training.test_episodes": 0,
        "training.generations": 2,
        "hardware.device": device,
    }
    shutil.rmtree(folder, ignore_errors=True)
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "neuroevo", "train", "frostbite_ga", "--out", str(folder), *words]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})
    with (folder / "metrics.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    """Measure both dtypes on both devices."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--population", type=int, default=400)
    parser.add_argument("--steps", type=int, default=500, help="maximal number of steps of an episode")
    parser.add_argument("--devices", default="gpu,cpu")
    arguments = parser.parse_args()
    for dtype in ("float32", "int8"):
        results = {}
        for device in arguments.devices.split(","):
            folder = arguments.folder / f"{dtype}_{device}"
            rows = train(device, dtype, arguments.population, arguments.steps, folder)
            results[device] = [{k: v for k, v in row.items() if not k.startswith(_TIMES)} for row in rows]
            rate, idle = float(rows[-1]["steps_per_s"]), float(rows[-1]["idle_share"])
            line = {"figure": "generation", "dtype": dtype, "device": device, "population": arguments.population}
            line |= {"steps_per_s": rate, "idle_share": idle}
            line["same_results"] = all(each == results[device] for each in results.values())
            print(json.dumps(line), flush=True)
            if arguments.json:
                with arguments.json.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            if not line["same_results"]:
                sys.exit(f"{dtype}: the results on {' and '.join(results)} differ")


if __name__ == "__main__":
    main()
