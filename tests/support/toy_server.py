"""The command with a ToyEvaluator, many times: every time in a process that is forked from this one.

Importing what the command needs takes ten times as long as most of the runs that tests make; here it happens once.
On standard input comes a line of JSON for every command, with its arguments, limits and surroundings; on standard
output goes a line with its exit code, negative for a signal, and its output. tests.support.commands is the client.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import resource
import selectors
import signal
import sys
from pathlib import Path

import gymnasium  # noqa: F401 (what the command imports when it needs it)

from neuroevo.analysis import network_export, rendering, run_plots  # noqa: F401
from neuroevo.cli import main
from neuroevo.rollout import evaluator  # noqa: F401
from neuroevo.sessions import (
    evaluators,
    progress,  # noqa: F401
)
from tests.support import disk_calls
from tests.support.toy import ToyEvaluator

SECONDS = 120  # that a command may take


def serve() -> None:
    """Returns in the forked processes, with a command to run, and in this one when no more commands will come."""
    for line in iter(sys.stdin.readline, ""):
        pipes = [os.pipe(), os.pipe()]
        child = os.fork()
        if child == 0:
            become(json.loads(line), [writes for _, writes in pipes])
            return
        for _, writes in pipes:
            os.close(writes)
        stdout, stderr = read_to_the_end([reads for reads, _ in pipes])
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"code": code, "stdout": stdout.decode(), "stderr": stderr.decode()}), flush=True)


def become(command: dict, outputs: list[int]) -> None:
    """Has this process be the one that was asked for.

    largest_file: bytes to which its files may grow, or None. folder: where it is. variables: of its environment.
    real: whether episodes are played, not by a ToyEvaluator. kill_at: the name of a file that it is killed instead of
    renaming. fault: as of disk_calls.begin(), for the folder `in`; the number of calls is in the file `count` in the
    end.
    """
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, output in enumerate(outputs, start=1):
        os.dup2(output, number)
        os.close(output)
    signal.alarm(SECONDS)
    if command["largest_file"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (command["largest_file"], command["largest_file"]))
    os.environ.update(command.get("variables") or {})
    if command.get("folder") is not None:
        os.chdir(command["folder"])
    if not command.get("real"):
        evaluators.make_evaluator = lambda config, reference_batch: ToyEvaluator()
    if "kill_at" in command:
        disk_calls.kill_at_rename(command["kill_at"])
    if "fault" in command:
        atexit.register(lambda: Path(command["count"]).write_text(str(disk_calls.count())))
        disk_calls.begin(command["in"], fault=command["fault"])
    sys.argv = ["neuroevo", *command["arguments"]]


def read_to_the_end(pipes: list[int]) -> list[bytes]:
    """What comes out of each of them until all are closed."""
    read = {pipe: b"" for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                some = os.read(key.fd, 65536)
                read[key.fd] += some
                if not some:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return list(read.values())


if __name__ == "__main__":
    parent = os.getpid()
    gc.freeze()  # a fork that collects garbage would copy all that was imported, which takes longer than most commands
    serve()
    if os.getpid() != parent:
        main()
