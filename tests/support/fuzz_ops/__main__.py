"""Random calls of all TensorFlow ops, right and wrong ones, from one thread and from several.

    python -m tests.support.fuzz_ops --calls 1000000 --seed 1
    python -m tests.support.fuzz_ops --seed 1 --round 1234         # one round of these alone

Every call must do what it does elsewhere (in the C interface, with the reference backend; or in a model of the queue),
or be refused with a message that names what is wrong. The calls are made by another process: when it dies, hangs or
finds an op that did something else, what it was calling is printed, and the round, which makes the same calls again. In
rounds of several threads only each thread's calls are the same, not their order. Where native libraries are built
with AddressSanitizer, memory that was lost is looked for at the end.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.support.fuzz_ops.last_call import LastCalls

ROOT = Path(__file__).parents[3]
_PATIENCE = 150.0  # seconds without a new call, after which the process hangs


def watch(command: Sequence[str], last_calls: LastCalls, patience: float) -> str:
    """Runs what makes the calls.

    Returns:
        What became of it: "" where it ended well, or how it did not, and its last calls.
    """
    child = subprocess.Popen(command, cwd=ROOT)
    try:
        if last_calls.wait_for_progress(patience, lambda: child.poll() is not None):
            if child.returncode == 0:
                return ""
            how = f"ended with {child.returncode}"
        else:
            child.send_signal(signal.SIGABRT)  # Python then says where its threads are
            child.wait(60)
            how = f"made no call for {patience:g} seconds"
    finally:
        child.kill()
        child.wait()
    calls = [f"  call {number} of thread {thread}: {what}" for thread, (number, what) in last_calls.read().items()]
    return "\n".join([f"The process {how}. Its last calls:", *calls])


def fuzz(seed: int, first: int, calls: int, patience: float = _PATIENCE) -> tuple[str, dict[str, dict[str, int]]]:
    """Makes random calls in another process.

    Returns:
        What went wrong, "" for nothing, and how often each op succeeded and was refused.
    """
    with tempfile.TemporaryDirectory(prefix="fuzz-ops-") as folder:
        last_calls = LastCalls(Path(folder) / "last_calls")
        module = "tests.support.fuzz_ops.child"
        command = [sys.executable, "-X", "faulthandler", "-m", module, folder, str(seed), str(first), str(calls)]
        wrong = watch(command, last_calls, patience)
        written = Path(folder) / "counts.json"
        found = json.loads(written.read_text()) if written.exists() else {"rounds": 0, "counts": []}
        leaks = "" if wrong else (Path(folder) / "leaks.txt").read_text()
    counts: dict[str, dict[str, int]] = defaultdict(lambda: {"succeeded": 0, "refused": 0})
    for op, what, count in found["counts"]:
        counts[op][what] = count
    if wrong:
        again = f"python -m tests.support.fuzz_ops --seed {seed} --round {first + found['rounds']}"
        wrong = f"{wrong}\nFind it again: {again}"
    elif leaks:
        wrong = f"What native code has allocated in these rounds was lost:\n{leaks}"
    return wrong, dict(counts)


def main() -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, help="this one alone")
    given = parser.parse_args()
    first, calls = (0, given.calls) if given.round is None else (given.round, 1)
    wrong, counts = fuzz(given.seed, first, calls)
    print(f"{'op':28}{'succeeded':>12}{'refused':>12}")
    for op, what in counts.items():
        print(f"{op:28}{what['succeeded']:12,}{what['refused']:12,}")
    totals = [sum(each[what] for each in counts.values()) for what in ("succeeded", "refused")]
    print(f"{'all':28}{totals[0]:12,}{totals[1]:12,}\n{sum(totals):,} calls, seed {given.seed}")
    print(wrong or "Nothing went wrong.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
