"""A Ray cluster of machines in separate Linux namespaces, connected by a network that can be cut and slowed.

Each machine has its own network, processes, host name, shared memory and Ray folder; other files are shared with the
tests' machine. A pair of virtual interfaces connects each machine to a bridge in another namespace, and no packet
leaves these. The first process of a namespace ends with the tests' process, and Linux then kills all other
processes in the namespace.
"""

from __future__ import annotations

import heapq
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_PORT = 6379
_RAY = {"PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}  # the network is isolated
_SOL_PACKET, _PACKET_VNET_HDR = 263, 15  # of <linux/if_packet.h>: frames come and go with what their checksums need


def why_not() -> str:
    """Why this machine cannot have such machines; "" if it can."""
    missing = [name for name in ("ip", "nsenter", "unshare") if shutil.which(name) is None]
    if missing:
        return f"there is no {', '.join(missing)} (Debian's iproute2 and util-linux)"
    tried = ["unshare", "--net", "--pid", "--mount", "--uts", "--fork", "ip", "link", "add", "type", "veth"]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    return f"namespaces with interfaces cannot be made: {done.stderr.strip()}" if done.returncode else ""


class Machine:
    """A machine.

    Args:
        number: From 1; the first has the cluster's head.
        switch: The process whose network has the bridge.

    Attributes:
        address: Its IP address.
    """

    def __init__(self, number: int, switch: int):
        self.number, self.address, self._switch = number, f"10.77.0.{number}", switch
        self._init = _first_process("--net", "--pid", "--mount", "--uts", name=f"machine{number}")
        self.pid = _child(self._init)
        cable = ["ip", "link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", str(self.pid)]
        _in_network(switch, *cable)
        _in_network(switch, "ip", "link", "set", self._port, "master", "bridge", "up")
        _in_network(self.pid, "ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        for interface in ("lo", "eth0"):
            _in_network(self.pid, "ip", "link", "set", interface, "up")
        self._relay: subprocess.Popen[str] | None = None

    @property
    def _port(self) -> str:
        return f"port{self.number}"

    def start(self, *command: object, **options: Any) -> subprocess.Popen[str]:
        """Start a command on the machine; send it signals by kill(), not through the returned process."""
        words = ["nsenter", f"--target={self.pid}", "--net", "--pid", "--mount", "--uts", *map(str, command)]
        return subprocess.Popen(words, cwd=ROOT, env={**os.environ, **_RAY}, text=True, **options)

    def start_ray(self, head: str) -> subprocess.Popen[str]:
        """Join the cluster of a head's address, or start as that head; this is done when the returned process ends."""
        own = ["--head", f"--port={_PORT}", "--include-dashboard=false"] if head == self.address else []
        own = own or [f"--address={head}:{_PORT}"]
        sizes = ["--num-cpus=1", f"--object-store-memory={100 * 2**20}", f"--node-ip-address={self.address}"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *own, *sizes, "--disable-usage-stats"]
        return self.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def processes(self, *words: str) -> list[int]:
        """Return the machine's processes whose command line contains all these words, the oldest first."""
        found, own = [], os.stat(f"/proc/{self.pid}/ns/pid").st_ino
        for path in Path("/proc").iterdir():
            with suppress(OSError):
                if path.name.isdigit() and os.stat(path / "ns" / "pid").st_ino == own and int(path.name) != self.pid:
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if command and all(word in command for word in words):
                        found.append(int(path.name))
        return sorted(found)

    def kill(self, *words: str, sent: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to those processes and return their number."""
        chosen = self.processes(*words)
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, sent)
        return len(chosen)

    def cut(self) -> None:
        """Disconnect the machine: packets in both directions are lost silently."""
        _in_network(self._switch, "ip", "link", "set", self._port, "nomaster")

    def join(self) -> None:
        """Undo cut() or slow()."""
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
            self._relay = None
            _in_network(self._switch, "ip", "link", "delete", f"slow{self.number}")
        _in_network(self._switch, "ip", "link", "set", self._port, "master", "bridge")

    def slow(self, seconds: float, loss: float) -> None:
        """Delay the machine's frames in each direction, and drop a share of them.

        By a program, since not every kernel has what `tc ... netem` needs.
        """
        ends = f"slow{self.number}", f"far{self.number}"
        _in_network(self._switch, "ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        _in_network(self._switch, "ip", "link", "set", ends[0], "up")
        _in_network(self._switch, "ip", "link", "set", ends[1], "master", "bridge", "up")
        self.cut()
        relay = [sys.executable, __file__, "relay", self._port, ends[0], seconds, loss, self.number]
        self._relay = _start_in_network(self._switch, *relay, stdout=subprocess.PIPE)
        assert self._relay.stdout.readline() == "ready\n"

    def end(self) -> None:
        """Terminate the machine with all of its processes."""
        if self._relay is not None:
            self._relay.kill()
            self._relay.wait()
        _end(self._init)


class SeparateMachines:
    """For the life of a `with` block.

    Args:
        count: How many machines there are; Ray runs on none of them yet.

    Attributes:
        machines: The machines.
        address: What --cluster takes.
    """

    def __init__(self, count: int):
        self.machines: list[Machine] = []
        self._init = _first_process("--net", "--pid", "--mount", "--uts", name="switch")
        try:
            switch = _child(self._init)
            _in_network(switch, "ip", "link", "add", "bridge", "type", "bridge")
            _in_network(switch, "ip", "link", "set", "bridge", "up")
            for number in range(1, count + 1):
                self.machines.append(Machine(number, switch))
        except BaseException:
            self.__exit__()
            raise
        self.address = f"{self.machines[0].address}:{_PORT}"

    def __enter__(self) -> SeparateMachines:
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self.machines:
            machine.end()
        _end(self._init)

    def start_ray(self) -> None:
        """Connect all machines without a cluster to one, with the first as head; the others end with the head."""
        for several in self.machines[:1], self.machines[1:]:
            lost = [machine for machine in several if not machine.processes("/raylet ")]
            for process in [machine.start_ray(self.machines[0].address) for machine in lost]:
                output, _ = process.communicate(timeout=300)
                assert process.returncode == 0, output

    def players(self) -> list[int]:
        """The players' processes on all machines."""
        return [pid for machine in self.machines for pid in machine.processes("PlayerActor")]


def _first_process(*kinds: str, name: str) -> subprocess.Popen[str]:
    command = ["unshare", *kinds, "--fork", "--mount-proc", sys.executable, __file__, "init", name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def _end(process: subprocess.Popen[str]) -> None:
    """End a namespace's first process, and return when all processes in the namespace have ended."""
    process.stdin.close()
    process.wait()
    process.stdout.close()


def _child(process: subprocess.Popen[str]) -> int:
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())


def _start_in_network(pid: int, *command: object, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(["nsenter", f"--target={pid}", "--net", *map(str, command)], text=True, **options)


def _in_network(pid: int, *command: object) -> None:
    process = _start_in_network(pid, *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = process.communicate()
    assert process.returncode == 0, f"{command}: {output}"


def init(name: str) -> None:
    """The first process of a machine, which lives until its standard input ends. It ignores its orphans' ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    socket.sethostname(name)
    Path("/tmp/ray").mkdir(exist_ok=True)
    for folder in ("/dev/shm", "/tmp/ray"):
        subprocess.call(["mount", "-t", "tmpfs", name, folder])
    print("ready", flush=True)
    sys.stdin.read()


def relay(one: str, other: str, seconds: float, loss: float, seed: int) -> None:
    """Forward frames between two interfaces with a delay, and drop a share of them."""
    sockets, rng = [], random.Random(seed)
    for name in (one, other):
        line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
        line.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
        line.bind((name, 0))
        sockets.append(line)
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    print("ready", flush=True)
    number = 0
    while True:
        patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for line in select.select(sockets, [], [], patience)[0]:
            frame, origin = line.recvfrom(2**17)
            if origin[2] != socket.PACKET_OUTGOING and rng.random() >= loss:
                number += 1
                target = sockets[1 - sockets.index(line)]
                heapq.heappush(waiting, (time.monotonic() + seconds, number, target, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(waiting)
            with suppress(OSError):
                target.send(frame)


if __name__ == "__main__":
    if sys.argv[1] == "init":
        init(sys.argv[2])
    else:
        relay(sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
