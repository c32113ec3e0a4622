"""Commands and scripts in forks of one process, which has imported what most of them need.

    python -m tests.support.fork_server SOCKET

Importing that takes longer than most of what tests have the command do. `fork_server` starts this, `ask` is its client.
"""

from __future__ import annotations

import atexit
import gc
import inspect
import json
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS = 240  # that a command may take
CLIENT = """#!{python} -IS
from __future__ import annotations
import json, os, socket, sys
{ask}
command = {{**{options}, "arguments": sys.argv[1:], "folder": os.getcwd(), "variables": dict(os.environ)}}
sys.exit(int(ask({address!r}, command, [0, 1, 2]).recv(8) or 1))
"""


@contextmanager
def fork_server() -> Iterator[str]:
    """Yield the address of a server, which runs one command at a time."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "tests.support.fork_server", f"{folder}/socket"]
        with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout.readline() == "ready\n"
                yield words[-1]
            finally:
                server.kill()


def ask(address: str, command: dict[str, Any], streams: Sequence[int]) -> socket.socket:
    """Begin a command in a fork of a server. Its exit code, negative for a signal, comes from the returned socket.

    command: as of become(). streams: descriptors of its standard input, output and error.
    """
    server = socket.socket(socket.AF_UNIX)
    server.connect(address)
    words = json.dumps(command, default=str).encode()
    socket.send_fds(server, [len(words).to_bytes(4, "big")], streams)
    server.sendall(words)
    return server


def write_client(path: Path, address: str, **options: object) -> None:
    """Write a program that has a server run what it is called with, with these options of become().

    As a server runs one command at a time, a command must not call such a program.
    """
    path.write_text(CLIENT.format(python=sys.executable, ask=inspect.getsource(ask), options=options, address=address))
    path.chmod(0o755)


def serve(address: str) -> dict[str, Any]:
    """Return in the forked processes, with the command that each of them is to run."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while True:
            with listener.accept()[0] as client:
                child = os.fork()
                if child == 0:
                    return become(client)
                client.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def become(client: socket.socket) -> dict[str, Any]:
    """Have this process be the one that was asked for, and return the command.

    arguments: of the command, or a script's path and its arguments. script: whether it is a script. small: whether runs
    are tiny, as of small_neuroevo. toy: whether a ToyEvaluator plays the episodes. folder: where it is. variables: of
    its environment, and all of them if it is small or a script. largest_file: bytes to which its files may grow.
    kill_at: the name of a file that it is killed instead of renaming. fault: as of disk_calls.begin(), for the folder
    `in`; the number of calls is in the file `count` in the end.
    """
    from neuroevo.sessions import evaluators
    from tests.support import disk_calls
    from tests.support.toy import ToyEvaluator

    size, streams, *_ = socket.recv_fds(client, 4, 3)
    with client.makefile("rb") as stream:
        command: dict[str, Any] = json.loads(stream.read(int.from_bytes(size, "big")))
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    signal.alarm(SECONDS)
    if command.get("small") or command.get("script"):
        os.environ.clear()
    os.environ.update(command.get("variables") or {})
    os.chdir(command.get("folder") or ROOT)
    if (most := command.get("largest_file")) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    if command.get("toy"):
        evaluators.make_evaluator = lambda config, reference_batch: ToyEvaluator()
    if "kill_at" in command:
        disk_calls.kill_at_rename(command["kill_at"])
    if "fault" in command:
        atexit.register(lambda: Path(command["count"]).write_text(str(disk_calls.count())))
        disk_calls.begin(command["in"], fault=command["fault"])
    return command


if __name__ == "__main__":
    import gymnasium  # noqa: F401 (what commands import when they need it)

    from neuroevo.analysis import evaluation, network_export, rendering, run_plots  # noqa: F401
    from neuroevo.cli import main
    from neuroevo.rollout import evaluator  # noqa: F401
    from neuroevo.sessions import progress  # noqa: F401
    from neuroevo.training import tensorboard  # noqa: F401
    from tests.support import disk_calls, toy  # noqa: F401
    from tests.support.small_neuroevo import small

    gc.freeze()  # a fork that collects garbage would copy all that was imported
    given = serve(sys.argv[1])
    words = given["arguments"]
    if given.get("script"):
        sys.argv, sys.path[0] = words, str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")
    else:
        sys.argv = ["neuroevo", *(small(words) if given.get("small") else words)]
        main()
