"""Ends toy runs before one after another of the lines that write, resumes them, and compares them with a whole run.

    python -m tests.support.kill_lines FOLDER MOMENTS SIGKILL|SIGINT

A process of its own, with one thread, since it forks: MOMENTS runs are started in FOLDER, each sent the signal before
another of the lines that are executed in the files below, evenly spread over all of them. Ends with one JSON line.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from neuroevo.runs.paths import is_run
from neuroevo.sessions.folder import RunFolder
from tests.support.run_files import differences, run_contents
from tests.support.runs import config, new_run, play

PACKAGE = Path(__file__).parents[2] / "neuroevo"
WRITERS = ("sessions.folder", "sessions.resume", "sessions.log_file", "sessions.metrics_csv", "sessions.training_run")
WRITERS += ("runs.writer", "runs.database", "runs.about", "runs.state_rows", "runs.generation_rows", "runs.genome_rows")
WRITERS += ("runs.episode_rows", "training.tensorboard", "training.journal", "config.own_modules", "config.own_runs")
WRITERS += ("system.files",)
CHANGES = {
    "env": {"name": "Hopper-v5"},
    "network": {"name": "mlp", "normalize_observations": True},
    "algorithm": {
        "name": "experiments.examples.cma_es:CMAES",
        "population": 4,
    },  # whose source is kept, and which is on the list of runs
    "training": {"generations": 3},
    "checkpoints": {"every": 2, "keep_last": 1},
    "logging": {"trackers": ["tensorboard"]},
}


def signal_at_line(number: int, sent: signal.Signals) -> Callable[[], int]:
    """This process will get a signal just before it executes the line of that number in the files that write.

    Returns a function that returns the number of such lines executed so far.
    """
    files = {str(PACKAGE.joinpath(*name.split(".")).with_suffix(".py")) for name in WRITERS}
    assert all(map(os.path.isfile, files))
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            count += 1
            if count == number:
                signal.raise_signal(sent)
        return trace

    sys.settrace(trace)
    return lambda: count


def in_a_child(work: Callable[[], None]) -> int:
    """Runs work() in a forked process; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except KeyboardInterrupt:
            os._exit(130)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
    return os.waitpid(child, 0)[1]


def start_or_go_on(path: Path) -> None:
    play(RunFolder.resume(path) if is_run(path) else RunFolder.create(path, config(**CHANGES)))


def main(folder: Path, moments: int, sent: signal.Signals) -> dict[str, object]:
    """total: lines executed in a whole run. begun: of the killed runs, how many had a database already.

    statuses: how the killed processes and the resuming ones ended. different: lines whose run ended differently, with
    the names of files that differ (see run_files.py).
    """
    new_run(folder / "whole", **CHANGES)
    expected = run_contents(folder / "whole")

    def count() -> None:
        lines = signal_at_line(-1, sent)
        start_or_go_on(folder / "counted")
        sys.settrace(None)
        (folder / "lines").write_text(str(lines()))

    in_a_child(count)
    total, begun, statuses, different = int((folder / "lines").read_text()), 0, [], []
    for moment in range(moments):
        path, number = folder / f"run{moment}", 1 + moment * total // moments

        def killed(path: Path = path, number: int = number) -> None:
            signal_at_line(number, sent)
            start_or_go_on(path)

        first = in_a_child(killed)
        begun += is_run(path)
        statuses.append([first, in_a_child(lambda path=path: start_or_go_on(path))])
        if found := differences(run_contents(path), expected):
            different.append([number, found])
    return {"total": total, "begun": begun, "statuses": statuses, "different": different}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), signal.Signals[sys.argv[3]])))
