"""A Ray cluster on this machine: each of its nodes counts as a machine of one core, and can be added, lost and killed.

    python -m tests.support.simulated_cluster NODES

The nodes belong to a separate process, so that a test's process does not use Ray. It reads commands, "add" or
"remove NUMBER", from standard input and answers each with a line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


class SimulatedCluster:
    """For the life of a `with` block.

    Args:
        nodes: Initial number of nodes; the first is the head.

    Attributes:
        address: Address for --cluster.
        nodes: Number of nodes so far, including lost ones.
    """

    def __init__(self, nodes: int):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.simulated_cluster", str(nodes)],
            cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.address, self.nodes = self._answer(), nodes

    def __enter__(self) -> SimulatedCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.wait()

    def add(self) -> int:
        """Add a node and return its number."""
        self.nodes += 1
        return int(self._ask("add"))

    def remove(self, number: int) -> None:
        """Kill a node and all of its processes."""
        self._ask(f"remove {number}")

    def players(self) -> list[int]:
        """The processes of the players, on all nodes."""
        return players_of(self.address)

    def kill_server(self, name: str) -> None:
        """Kill the first Ray process of this name: "gcs_server", or "raylet" for the head's raylet."""
        servers = [pid for pid, words in _processes() if words.split(" ")[0].endswith(f"/{name}")]
        os.kill(next(pid for pid in servers if _parent(pid) == self._process.pid), signal.SIGKILL)

    def kill_players(self, sent: signal.Signals = signal.SIGKILL, most: int = 100) -> int:
        """Send a signal to at most `most` players, the newest first; return the number of these."""
        chosen = self.players()[::-1][:most]
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, sent)
        return len(chosen)

    def _ask(self, command: str) -> str:
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        line = self._process.stdout.readline()
        assert line, "the simulated cluster has ended"
        return line.strip()


def players_of(address: str, title: str = "PlayerActor") -> list[int]:
    """The processes of the players of the cluster at this address, or of others with this title, on this machine."""
    raylets = {pid for pid, words in _processes() if f"--gcs-address={address}" in words}
    return [pid for pid, words in _processes() if title in words and _parent(pid) in raylets]


def _processes() -> list[tuple[int, str]]:
    """Return the ids and command lines of all processes, ordered by id."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with suppress(OSError):
                found.append(
                    (int(path.name), (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                )
    return sorted(found)


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int((Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


def main(nodes: int) -> None:
    from ray.cluster_utils import Cluster

    own = dict(num_cpus=1, object_store_memory=100 * 2**20, include_dashboard=False)
    cluster = Cluster(initialize_head=True, head_node_args=own)
    added = [cluster.head_node]
    del own["include_dashboard"]
    added += [cluster.add_node(**own) for _ in range(nodes - 1)]
    print(cluster.address, flush=True)
    for line in sys.stdin:
        command, *number = line.split()
        if command == "add":
            added.append(cluster.add_node(**own))
            print(len(added) - 1, flush=True)
        else:
            cluster.remove_node(added[int(*number)], allow_graceful=False)
            print("removed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]))
