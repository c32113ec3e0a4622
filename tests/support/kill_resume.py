"""Kill a run repeatedly with SIGKILL, resume it each time, and compare it with an uninterrupted run.

    python -m tests.support.kill_resume CONFIG --kills 50 [--seed S] [--set KEY=VALUE ...]

A fifth of the kills come at a random moment while a process starts or soon after; the others after 0, 1 or 2
generations, at a random moment within the time of a generation: in the generation, or while files are written after it.
These processes are forks of this process, which has imported the required modules.

The two folders are compared file by file (run_files.py says what of them). After each kill no process may stay, such as
one that plays for the killed one, and nothing may be left among temporary files or printed to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from neuroevo import cli
from neuroevo.sessions.folder import RunFolder
from tests.support import orphans
from tests.support.run_files import differences, run_contents
from tests.support.runs import count_rows, read_rows

ROOT = Path(__file__).parents[2]
_LOOK = 0.01  # seconds between polls of a database, each of which takes a millisecond of a core


def kill_and_resume(config: Path, out: Path, kills: int, seed: int = 0, overrides: tuple[str, ...] = ()) -> list[int]:
    """Train to the end into out/"whole", and into out/"killed", which is killed `kills` times.

    Returns the number of finished generations at each kill. AssertionError: a process ended in another way, by
    finishing the run before the last kill, for example; or left something behind.
    """
    rng = random.Random(seed)
    killed, whole = out / "killed", out / "whole"
    settings = [argument for override in overrides for argument in ("--set", override)]
    began = time.monotonic()
    _to_the_end(_start(config, whole, settings))
    rows, took = read_rows(whole), time.monotonic() - began
    generation = rows[-1]["seconds_total"] / len(rows)
    start = took - rows[-1]["seconds_total"]
    lines: list[int] = []
    while len(lines) < kills:
        if rng.random() < 0.2:
            process = _start(config, killed, settings)
            _wait(rng.uniform(0, start + generation), killed, count_rows(killed) + 2)
        else:
            process = _fork(config, killed, settings)
            _wait_until_it_plays(process)
            _wait_for_lines(killed, count_rows(killed) + rng.randrange(3), process)
            _wait(rng.uniform(0, generation), killed, count_rows(killed) + 1)
        process.kill()
        stderr = process.communicate()[1]
        assert process.returncode == -9, f"ended before kill {len(lines)}: {process.returncode} {stderr}"
        assert stderr == "", f"printed before kill {len(lines)}: {stderr}"
        orphans.expect_none()
        lines.append(count_rows(killed))
    _to_the_end(_fork(config, killed, settings))
    return lines


def _to_the_end(process: subprocess.Popen | Fork) -> None:
    stderr = process.communicate()[1]
    assert (process.returncode, stderr) == (0, ""), f"{process.returncode} {stderr}"
    orphans.expect_none()


def _start(config: Path, path: Path, settings: list[str]) -> subprocess.Popen:
    command = [sys.executable, "-m", "neuroevo", "train", str(config), "--resume", str(path), *settings]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _fork(config: Path, path: Path, settings: list[str]) -> Fork:
    needed = ("neuroevo.rollout.evaluator", "neuroevo.sessions.progress", "neuroevo.training.tensorboard", "gymnasium")
    for module in needed:  # and what else it will need
        importlib.import_module(module)
    return Fork(["train", str(config), "--resume", str(path), *settings])


class Fork:
    """A command line of neuroevo in a fork of this process; of subprocess.Popen's interface what is needed here."""

    def __init__(self, arguments: list[str]):
        assert threading.active_count() == 1, "a fork would not have the other threads"
        reads, writes = os.pipe()
        self.stdout, self.stderr = open(reads), tempfile.TemporaryFile("w+")  # noqa: SIM115 (communicate() closes them)
        self.returncode: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            os.dup2(writes, 1)
            os.dup2(self.stderr.fileno(), 2)
            self._become(arguments)
        os.close(writes)

    @staticmethod
    def _become(arguments: list[str]) -> NoReturn:
        code: object = 1
        try:
            sys.argv = [str(ROOT / "neuroevo" / "__main__.py"), *arguments]  # as `python -m neuroevo` has it
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else int(code is not None))

    def running(self) -> bool:
        """Whether it has not ended."""
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)

    def communicate(self) -> tuple[str, str]:
        """The rest of its output and all of its standard error, once it has ended."""
        with self.stdout, self.stderr:
            stdout = self.stdout.read()
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self.stderr.seek(0)
            return stdout, self.stderr.read()


def _wait_until_it_plays(process: Fork) -> None:
    """Wait for the first line, which is printed when the folder is open."""
    assert process.stdout.readline(), process.communicate()[1]


def _wait_for_lines(path: Path, lines: int, process: Fork) -> None:
    """Wait until this number of generations is finished, or the process has ended."""
    while count_rows(path) < lines and process.running():
        time.sleep(_LOOK)


def _wait(seconds: float, path: Path, lines: int) -> None:
    """Wait, at most until this number of generations is finished: the machine may have been slower before."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and count_rows(path) < lines:
        time.sleep(min(left, _LOOK))


@contextmanager
def watched(out: Path) -> Iterator[None]:
    """In the block processes that lose their parent are kept track of, and temporary files go into a folder of out's.

    AssertionError: some of these files are left at its end.
    """
    temporary = out / "temporary"
    temporary.mkdir(parents=True)
    before, os.environ["TMPDIR"] = os.environ.get("TMPDIR"), str(temporary)
    tempfile.tempdir = None  # which Python has looked up once, and its forks have
    try:
        with orphans.adopted():
            yield
    finally:
        del os.environ["TMPDIR"]
        os.environ |= {} if before is None else {"TMPDIR": before}
        tempfile.tempdir = None
    left = [each.name for each in temporary.iterdir()]
    assert not left, f"temporary files are left: {left}"


def main(
    config: Path,
    kills: Annotated[int, typer.Option(min=1)] = 50,
    seed: int = 0,
    overrides: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE")] = None,
    out: Annotated[Path | None, typer.Option(help="Keep the two runs there.")] = None,
) -> None:
    """Print the generations at each kill, and the files in which the two runs differ, as one line of JSON."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = out or Path(temporary)
        with watched(folder):
            lines = kill_and_resume(config, folder, kills, seed, tuple(overrides or ()))
        one, other = run_contents(folder / "killed"), run_contents(folder / "whole")
        RunFolder.resume(folder / "killed", trust=True).close()  # it is not locked
        found = {"finished_at_kills": lines, "generations": count_rows(folder / "killed"), "files": len(one)}
        different = differences(one, other)
        print(json.dumps({**found, "different": different}))
        raise typer.Exit(int(bool(different)))


if __name__ == "__main__":
    typer.run(main)
