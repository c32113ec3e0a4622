"""The command of small_neuroevo.py in forks of one process, which has imported what most commands need.

    python -m tests.support.small_server SOCKET

Importing that takes longer than most of what pages have the command do. `served` starts this and makes the command.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    words = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(words).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(words)
    sys.exit(int(server.recv(8) or 1))
"""


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """Within the block a file `neuroevo` in the folder is the command; one runs at a time."""
    address, command = str(folder / "socket"), folder / "neuroevo"
    command.write_text(CLIENT.format(python=sys.executable, address=address))
    command.chmod(0o755)
    words = [sys.executable, "-m", "tests.support.small_server", address]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout.readline() == "ready\n"
        yield
        server.kill()


def serve(address: str) -> None:
    """Returns in the forked processes, each of which is to run a command."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        print("ready", flush=True)
        while True:
            with listener.accept()[0] as client:
                child = os.fork()
                if child == 0:
                    become(client)
                    return
                client.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def become(client: socket.socket) -> None:
    """Has this process be the one that the client stands for: its arguments, folder, variables, and streams."""
    size, files, *_ = socket.recv_fds(client, 4, 3)
    with client.makefile("rb") as stream:
        arguments, folder, variables = json.loads(stream.read(int.from_bytes(size, "big")))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[1:] = arguments


if __name__ == "__main__":
    import gymnasium  # noqa: F401 (what commands import when they need it)

    from neuroevo.analysis import evaluation, rendering, run_plots  # noqa: F401
    from neuroevo.cli import main
    from neuroevo.rollout import evaluator  # noqa: F401
    from neuroevo.sessions import progress  # noqa: F401
    from tests.support.small_neuroevo import small

    gc.freeze()  # a fork that collects garbage would copy all that was imported
    serve(sys.argv[1])
    sys.argv = ["neuroevo", *small(sys.argv[1:])]
    main()
