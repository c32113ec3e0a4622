"""The process that makes the fuzzer's calls: python -m tests.support.fuzz_ops.child FOLDER SEED FIRST_ROUND CALLS.

It leaves in the folder what it calls (last_calls), after each round what came of the calls (counts.json), and at the
end what leaked (leaks.txt).
"""

from __future__ import annotations

import gc
import json
import sys
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from neuroevo.rollout.tensorflow_import import load_tensorflow, skip_optional_imports


def run(folder: Path, seed: int, first: int, calls: int) -> int:
    """Plays rounds until there were so many calls. Returns the exit code."""
    skip_optional_imports()
    load_tensorflow()  # before the others, which import it
    import tensorflow as tf

    from tests.support.fuzz_ops import rounds
    from tests.support.fuzz_ops.calls import Wrong
    from tests.support.fuzz_ops.last_call import LastCalls
    from tests.support.fuzz_ops.leaks import own_leaks

    last_calls = LastCalls(folder / "last_calls")
    counts: Counter[tuple[str, str]] = Counter()
    number = first
    while counts.total() < calls:
        try:
            with tf.device("/cpu:0"):
                counts += rounds.play(seed, number, last_calls)
        except Wrong:
            traceback.print_exc()
            return 1
        number += 1
        gc.collect()  # what the round has dropped goes now, not somewhere in the next
        rows = [[op, what, count] for (op, what), count in sorted(counts.items())]
        (folder / "counts.json").write_text(json.dumps({"rounds": number - first, "counts": rows}))
    (folder / "leaks.txt").write_text(own_leaks(folder))
    return 0


if __name__ == "__main__":
    where, *numbers = sys.argv[1:]
    np.set_printoptions(threshold=50)  # what a message shows of an array
    sys.exit(run(Path(where), *map(int, numbers)))
